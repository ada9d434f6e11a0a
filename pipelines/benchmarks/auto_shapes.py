"""Generated sets whose clusters have odd shapes, sizes and densities, in 2 to 20 dimensions.

Each is a function of a random generator and has classes; rows of class -1 are noise that belongs to
no cluster, and are not counted when a clustering is compared with the classes.  Every other one
by name is a design set; no rule was tried on the rest before it was fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dmkc.datasets import (
    make_circles_and_gaussians,
    make_concentric_circles,
    make_flower,
    make_moons,
    make_rings,
    make_smiling_face,
    make_two_bananas,
)

Rng = np.random.Generator
Rows = tuple[np.ndarray, np.ndarray]


def joined(*parts: Any) -> Rows:
    """Parts one after the other, each a class."""
    sizes = [len(part) for part in parts]
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), sizes)


def ball(rng: Rng, n: int, centre: Any, spread: Any = 1.0) -> np.ndarray:
    centre = np.asarray(centre, float)
    return centre + np.asarray(spread) * rng.normal(size=(n, len(centre)))


def balls(rng: Rng, sizes: Any, d: int, apart: float, spreads: Any = None) -> Rows:
    """Normal balls whose centres are at least `apart` from each other."""
    centres: list[np.ndarray] = []
    reach = apart * len(sizes) ** (1 / min(d, 3))
    while len(centres) < len(sizes):
        one = rng.uniform(-reach, reach, d) if d <= 3 else reach * rng.normal(size=d) / d**0.5
        if all(np.linalg.norm(one - other) >= apart for other in centres):
            centres.append(one)
    spreads = np.ones(len(sizes)) if spreads is None else spreads
    made = zip(sizes, centres, spreads, strict=True)
    return joined(*(ball(rng, n, centre, spread) for n, centre, spread in made))


def arc(rng: Rng, n: int, radius: float, start: float, stop: float, blur: float) -> np.ndarray:
    angle = rng.uniform(start, stop, n)
    line = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    return line + blur * rng.normal(size=(n, 2))


def spirals(rng: Rng, arms: int, blur: float) -> Rows:
    turn = np.sqrt(rng.uniform(0.05, 1.0, (arms, 300))) * 3 * np.pi
    parts = []
    for k, t in enumerate(turn):
        angle = t + 2 * np.pi * k / arms
        line = t[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        parts.append(line + blur * rng.normal(size=line.shape))
    return joined(*parts)


def stretched(rng: Rng, d: int, clusters: int) -> Rows:
    """Balls that one linear map stretches ten times along one direction."""
    X, y = balls(rng, [300] * clusters, d, 7.0)
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    return X + 4.0 * rng.normal(size=(len(X), 1)) * direction, y


def links(rng: Rng) -> Rows:
    """Two rings in space, each through the other."""
    flat = [np.column_stack([arc(rng, 400, 1.0, 0, 2 * np.pi, 0.08), np.zeros(400)])] * 2
    second = flat[1][:, [0, 2, 1]] + [1.0, 0.0, 0.0]
    blur = 0.05 * rng.normal(size=(2, 400, 3))
    return joined(flat[0] + blur[0], second + blur[1])


def shells(rng: Rng, d: int) -> Rows:
    """A core inside a sphere."""
    around = rng.normal(size=(400, d))
    around *= 6.0 / np.linalg.norm(around, axis=1, keepdims=True)
    return joined(ball(rng, 400, np.zeros(d), 0.8), around + 0.2 * rng.normal(size=(400, d)))


def in_few_columns(rng: Rng, d: int, telling: int, clusters: int) -> Rows:
    """Balls that show in some columns, while the others are noise of the same spread."""
    X, y = balls(rng, [250] * clusters, telling, 6.0)
    return np.column_stack([X, X.std() * rng.normal(size=(len(X), d - telling))]), y


def bent(rng: Rng, d: int) -> Rows:
    """Two half moons turned into more columns, with noise in all of them."""
    X, y = make_moons(800, noise=0.05, seed=int(rng.integers(1000)))
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0][:2]
    return X @ axes + 0.03 * rng.normal(size=(len(X), d)), y


def heavy(rng: Rng, d: int, clusters: int) -> Rows:
    """Clusters with the tails of Student's t of three degrees of freedom."""
    X, y = balls(rng, [300] * clusters, d, 0.0)
    centres, _ = balls(rng, [1] * clusters, d, 10.0, np.zeros(clusters))
    return centres[y] + rng.standard_t(3, size=X.shape), y


def with_noise(rows: Rows, rng: Rng, share: float) -> Rows:
    """Uniform rows of class -1 all over the box of the others."""
    X, y = rows
    n = int(share * len(X))
    noise = rng.uniform(X.min(0), X.max(0), (n, X.shape[1]))
    return np.concatenate([X, noise]), np.concatenate([y, np.full(n, -1)])


def bars(rng: Rng, count: int) -> Rows:
    parts = [np.column_stack([rng.uniform(0, 10, 300), rng.normal(1.2 * k, 0.12, 300)])
             for k in range(count)]  # fmt: skip
    return joined(*parts)


def squares(rng: Rng) -> Rows:
    """A square frame around a square."""
    outer = rng.uniform(-3, 3, (4000, 2))
    frame = outer[np.abs(outer).max(axis=1) > 2.3][:600]
    return joined(rng.uniform(-1.2, 1.2, (300, 2)), frame)


def board(rng: Rng) -> Rows:
    """Nine touching squares of very different density, with lanes between them."""
    sizes = [60, 120, 240] * 3
    corners = [(2.6 * i, 2.6 * j) for i in range(3) for j in range(3)]
    return joined(*(rng.uniform(0, 2, (n, 2)) + at for n, at in zip(sizes, corners, strict=True)))


def cross(rng: Rng) -> Rows:
    """Two long normal clusters that cross."""
    return joined(ball(rng, 400, (0, 0), (6.0, 0.4)), ball(rng, 400, (0, 0), (0.4, 6.0)))


def seeded(make: Callable[..., Any], **values: Any) -> Callable[[Rng], Rows]:
    return lambda rng: make(**values, seed=int(rng.integers(1000)))


SHAPES: dict[str, Callable[[Rng], Rows]] = {
    "bananas": seeded(make_two_bananas, n=1000),
    "bars 3": lambda rng: bars(rng, 3),
    "bars 5": lambda rng: bars(rng, 5),
    "bent moons, 10 columns": lambda rng: bent(rng, 10),
    "bent moons, 20 columns": lambda rng: bent(rng, 20),
    "blobs 3 close": lambda rng: balls(rng, [300] * 3, 2, 4.0),
    "blobs 5 in 10 columns": lambda rng: balls(rng, [200] * 5, 10, 6.0),
    "blobs 8": lambda rng: balls(rng, [120] * 8, 2, 5.0),
    "blobs 10 in 20 columns": lambda rng: balls(rng, [120] * 10, 20, 6.0),
    "blobs of other sizes": lambda rng: balls(rng, [800, 100, 60], 2, 7.0),
    "blobs of other spreads": lambda rng: balls(rng, [300] * 3, 2, 9.0, [0.4, 1.2, 2.5]),
    "blobs with noise": lambda rng: with_noise(balls(rng, [250] * 4, 2, 8.0), rng, 0.1),
    "board": board,
    "circles and gaussians": seeded(make_circles_and_gaussians, n=1000),
    "concentric circles": seeded(make_concentric_circles, n=1000),
    "core in a sphere, 3 columns": lambda rng: shells(rng, 3),
    "core in a sphere, 5 columns": lambda rng: shells(rng, 5),
    "cross": cross,
    "few rows in the second": lambda rng: balls(rng, [1425, 75], 5, 8.0),
    "flower": seeded(make_flower, n=1200),
    "heavy tails 3 in 2 columns": lambda rng: heavy(rng, 2, 3),
    "heavy tails 4 in 10 columns": lambda rng: heavy(rng, 10, 4),
    "links": links,
    "moons": seeded(make_moons, n=800, noise=0.08),
    "moons with noise": lambda rng: with_noise(make_moons(800, noise=0.05, seed=3), rng, 0.08),
    "rings 2": seeded(make_rings, n=800, noise=0.06),
    "rings with a core": lambda rng: joined(
        arc(rng, 500, 5, 0, 2 * np.pi, 0.25),
        arc(rng, 300, 2.5, 0, 2 * np.pi, 0.25),
        ball(rng, 150, (0, 0), 0.3),
    ),
    "rings with noise": lambda rng: with_noise(
        joined(arc(rng, 500, 5, 0, 2 * np.pi, 0.2), arc(rng, 300, 2, 0, 2 * np.pi, 0.2)), rng, 0.05
    ),
    "smiling face": seeded(make_smiling_face, n=1000),
    "spirals 2": lambda rng: spirals(rng, 2, 0.25),
    "spirals 3": lambda rng: spirals(rng, 3, 0.25),
    "squares": squares,
    "stretched 3 in 2 columns": lambda rng: stretched(rng, 2, 3),
    "stretched 4 in 10 columns": lambda rng: stretched(rng, 10, 4),
    "telling columns 3 of 10": lambda rng: in_few_columns(rng, 10, 3, 4),
    "telling columns 4 of 20": lambda rng: in_few_columns(rng, 20, 4, 3),
    "three arcs": lambda rng: joined(
        *(
            np.add(arc(rng, 250, 3, a, a + 2, 0.15), (2 * k, 1.5 * k))
            for k, a in enumerate((0, 2, 4))
        )
    ),
    "units": lambda rng: (
        balls(rng, [300] * 3, 4, 6.0)[0] * [1, 100, 1, 1000],
        np.repeat([0, 1, 2], 300),
    ),
}
DESIGN = sorted(SHAPES)[::2]


def shape(name: str) -> Rows:
    """The rows of a set, mixed, and their classes."""
    rng = np.random.default_rng([sorted(SHAPES).index(name), 11])
    X, y = SHAPES[name](rng)
    order = rng.permutation(len(X))
    return np.asarray(X, dtype=np.float64)[order], np.asarray(y)[order].astype(int)
