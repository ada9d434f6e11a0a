"""A kernel with fitted state in one file: inner products of ranks instead of values.

Every column is replaced by the share of sampled rows that lie below it, so that outliers and skewed
columns lose their hold.  What it learns is a table of quantiles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmkc.extending import FittedKernel, Identity, Kernel, register_kernel


@dataclass(frozen=True, repr=False)
class Ranks(Kernel):
    """x and z by the ranks of their columns, in `steps` steps."""

    steps: int = 100

    def fit(self, sample):
        levels = np.linspace(0.0, 1.0, self.steps + 1)
        return FittedRanks(self, np.quantile(sample.rows, levels, axis=0).T.copy())

    def stored_width(self, n_columns, n_landmarks):
        return n_columns

    def restore(self, state, n_columns):
        edges = state.get("edges")
        if edges is None or edges.shape != (n_columns, self.steps + 1):
            raise ValueError("its table of quantiles does not fit")
        return FittedRanks(self, edges)


@dataclass(frozen=True, eq=False)
class FittedRanks(FittedKernel):
    """The quantiles of every column."""

    kernel: Ranks
    edges: np.ndarray

    @property
    def stored_width(self):
        return len(self.edges)

    def fill(self, tile, out, at):
        out[:, at : at + len(self.edges)] = self._ranks(tile.rows)

    def feature_map(self, cut_off):
        return Identity(len(self.edges))

    def diagonal(self, tile):
        return np.square(self._ranks(tile.rows)).sum(axis=1)

    def state(self):
        return {"edges": self.edges}

    def _ranks(self, rows):
        found = [
            np.searchsorted(edges, column) for edges, column in zip(self.edges, rows.T, strict=True)
        ]
        return np.column_stack(found) / self.kernel.steps - 0.5


register_kernel("ranks", Ranks)
