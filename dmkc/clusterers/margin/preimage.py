"""Pre-images: vectors whose image comes close to a sum of images (Wu and Zhang, appendix C).

A target Psi = sum_i s_i phi(x_i) is approximated by multiples of phi(b) of a few vectors b, one
after the other.  For the Gaussian kernel the best b for what is left of Psi is a fixed point of a
weighted mean of the rows (eqs 46 and 47).  The weights have both signs, so that the mean may jump
out of the data or divide by nothing: a step is taken only where it brings phi(b) closer to Psi.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular

MAX_STEPS = 25
CLOSE = 1e-3
"""The iteration ends when b moves by less than this, squared, in units of the kernel's width."""
VANISHING = 1e-9
"""A sum of weights below this share of their absolute sum is no denominator."""
DEPENDENT = 1e-5
"""A vector is not new when less than this share of its squared image is."""
NEGLIGIBLE = 1e-12
"""A row whose weight is below this share of the largest is no part of the target."""
CANDIDATES = 32
"""Rows that are looked at for a place to begin."""


def gaussian(A: np.ndarray, B: np.ndarray, gamma: float) -> np.ndarray:
    """The Gaussian kernel matrix of two sets of vectors."""
    squared = np.einsum("ij,ij->i", A, A)[:, None] + np.einsum("ij,ij->i", B, B) - 2.0 * A @ B.T
    return np.exp(-gamma * np.maximum(squared, 0.0))


@dataclass
class Basis:
    """Images of some vectors, made orthonormal one after the other.

    Features keep their places when a vector is added, so that weights on them stay valid.
    """

    gamma: float
    rows: np.ndarray
    """The rows in memory."""
    vectors: np.ndarray = field(init=False)
    """One vector a row."""
    features: np.ndarray = field(init=False)
    """Features of the rows, not centred."""

    def __post_init__(self) -> None:
        self.vectors = np.zeros((0, self.rows.shape[1]))
        self.features = np.zeros((len(self.rows), 0))
        self._factor = np.zeros((0, 0))  # features of the vectors themselves

    def __len__(self) -> int:
        return len(self.vectors)

    def expansion(self, weights: np.ndarray) -> np.ndarray:
        """Coefficients of the vectors' images that make a direction of feature space (eq. 49)."""
        if not len(self):
            return np.zeros(0)
        return solve_triangular(self._factor, weights, trans="T", lower=True)

    def add(self, vector: np.ndarray) -> bool:
        """Take the vector in; False, and nothing changes, when its image is no new direction."""
        size = len(self)
        own = np.zeros(0)
        if size:
            values = gaussian(self.vectors, vector[None, :], self.gamma)[:, 0]
            own = solve_triangular(self._factor, values, lower=True)
        left = 1.0 - float(own @ own)
        if left < DEPENDENT:
            return False
        new = np.sqrt(left)
        factor = np.zeros((size + 1, size + 1))
        factor[:size, :size], factor[size, :size], factor[size, size] = self._factor, own, new
        column = gaussian(self.rows, vector[None, :], self.gamma)[:, 0]
        self.features = np.column_stack([self.features, (column - self.features @ own) / new])
        self.vectors = np.vstack([self.vectors, vector])
        self._factor = factor
        return True


@dataclass(frozen=True)
class Target:
    """What a basis misses of Psi = sum_i s_i phi(x_i)."""

    basis: Basis
    signs: np.ndarray
    """The weights s_i of the rows."""
    covered: np.ndarray
    """Coefficients of the part of Psi that the basis has."""

    @classmethod
    def of(cls, basis: Basis, signs: np.ndarray) -> Target:
        return cls(basis, signs, basis.expansion(signs @ basis.features))

    def reach(self, points: np.ndarray) -> np.ndarray:
        """<Psi less its projection, phi(b)> for some b: the larger in size, the better."""
        basis = self.basis
        whole = self.signs @ gaussian(basis.rows, points, basis.gamma)
        return whole - self.covered @ gaussian(basis.vectors, points, basis.gamma)

    def step(self, b: np.ndarray) -> np.ndarray | None:
        """The next b of the fixed point (eqs 46, 47); None where its denominator vanishes."""
        basis = self.basis
        pulls = self.signs * gaussian(basis.rows, b[None, :], basis.gamma)[:, 0]
        known = self.covered * gaussian(basis.vectors, b[None, :], basis.gamma)[:, 0]
        total = float(pulls.sum() - known.sum())
        if abs(total) <= VANISHING * float(np.abs(pulls).sum() + np.abs(known).sum()):
            return None
        return (pulls @ basis.rows - known @ basis.vectors) / total


def pre_image(basis: Basis, signs: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """A vector whose image points along what the basis misses of the target (algorithm 4).

    The iteration begins at the best of a few rows, stays within the range of the rows, and ends
    where a step would not improve.  None when the target is zero.
    """
    sizes = np.abs(signs)
    used = np.flatnonzero(sizes > NEGLIGIBLE * sizes.max(initial=0.0))
    if not len(used):
        return None
    target = Target.of(basis, signs)
    few = basis.rows[rng.choice(used, min(CANDIDATES, len(used)), replace=False)]
    reaches = np.abs(target.reach(few))
    best = int(reaches.argmax())
    b, reach = few[best], reaches[best]
    low, high = basis.rows[used].min(axis=0), basis.rows[used].max(axis=0)
    for _ in range(MAX_STEPS):
        step = target.step(b)
        if step is None or np.any(step < low) or np.any(step > high):
            break
        further = abs(float(target.reach(step[None, :])[0]))
        if further <= reach:
            break
        moved = basis.gamma * float((step - b) @ (step - b))
        b, reach = step, further
        if moved <= CLOSE:
            break
    return b
