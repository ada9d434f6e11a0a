"""Constraints on the rows at hand: all of them, or a sample that holds the constrained rows.

Starts race on a uniform sample.  Constrained rows are hardly ever in it, so they are fetched and
stand beside it, counting for as much as they do among all rows; where there are very many, whole
components are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from dmkc.clusterers.odm.descent import ConstrainedRows
from dmkc.clusterers.odm.distribution import DistributionSettings
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.rowset import SampleRows
from dmkc.constraints.assign import Assigner, assigner
from dmkc.constraints.linked import Constraints
from dmkc.data import Container, RowRecord, check_weights
from dmkc.scan.distribution import LossShape
from dmkc.scan.survey import TakeScan
from dmkc.typing import PerRow

CONSTRAINED_IN_RACE = 8192
"""At most about this many constrained rows stand beside the sample."""


@dataclass(frozen=True)
class Rules:
    """Constraints that have been checked, and how labels keep them."""

    constraints: Constraints
    container: Container
    n_clusters: int
    keep: Assigner | None
    """None where pairs may be violated at a price, which depends on the rows at hand."""

    @classmethod
    def of(
        cls, constraints: Constraints, container: Container, n_clusters: int, hard: bool
    ) -> Rules:
        keep = assigner(constraints, container, n_clusters, None) if hard else None
        return cls(constraints, container, n_clusters, keep)

    def constrained_rows(
        self, weights: np.ndarray, shape: LossShape, settings: DistributionSettings
    ) -> ConstrainedRows:
        keep = self.keep
        if keep is None:
            assert settings.penalty is not None
            price = settings.penalty * shape.constrained
            keep = assigner(self.constraints, self.container, self.n_clusters, price)
        return ConstrainedRows(weights, keep)

    def drawn(self, most: int, seed: int) -> tuple[Rules, np.ndarray]:
        """The rules of about `most` constrained rows, and their places among all of them."""
        c = self.constraints
        n = len(c.rows)
        if n <= most:
            return self, np.arange(n)
        edges = np.concatenate([c.must, c.cannot])
        graph = sp.coo_array((np.ones(len(edges)), edges.T), shape=(n, n))
        count, part = csgraph.connected_components(graph, directed=False)
        order = np.random.default_rng([seed, 5]).permutation(count)
        reach = np.cumsum(np.bincount(part)[order])
        taken = np.zeros(count, bool)
        taken[order[: max(1, int(np.searchsorted(reach, most, side="right")))]] = True
        places = np.flatnonzero(taken[part])
        fewer = _restricted(c, places)
        return Rules.of(fewer, self.container, self.n_clusters, self.keep is not None), places


@dataclass(frozen=True)
class RaceRows:
    """Rows in this process on which starts race."""

    rows: SampleRows
    shape: LossShape
    constrained: ConstrainedRows
    rules: Rules | None


def loss_shape(
    settings: DistributionSettings, free: float, constrained: float, fraction: float
) -> LossShape:
    """What rows count for: `free` and `constrained` are total weights, `fraction` a part.

    Constrained rows together count for a share that does not shrink with the number of free rows:
    otherwise a bias would let unequal clusters fall into one.
    """
    share = max(settings.share, fraction) if constrained > 0 else 0.0
    if free <= 0:
        share = 1.0
    return LossShape(
        settings.theta,
        settings.nu,
        (1.0 - share) / free if free > 0 else 0.0,
        share / constrained if constrained > 0 else 0.0,
    )


def constrained_weights(rules: Rules | None, sample_weight: PerRow) -> np.ndarray:
    """The weights of the constrained rows."""
    if rules is None:
        return np.empty(0)
    rows = rules.constraints.rows
    if sample_weight is None:
        return np.ones(len(rows))
    return np.asarray(check_weights(sample_weight, rules.constraints.n_rows)[rows])


def race_rows(
    prepared: Prepared,
    rules: Rules | None,
    weights: np.ndarray,
    settings: DistributionSettings,
    seed: int,
) -> RaceRows:
    """The sample, with the constrained rows (whose weights are given) beside it."""
    sample = prepared.sample
    if rules is None:
        shape = loss_shape(settings, float(sample.weights.sum()), 0.0, 0.0)
        return RaceRows(sample, shape, ConstrainedRows.none(), None)
    fraction = float(weights.sum()) / prepared.survey.count
    assert sample.record.constrained is not None
    free = sample.record.constrained == 0
    places = np.arange(len(weights))
    if not prepared.sample_is_all:
        rules, places = rules.drawn(CONSTRAINED_IN_RACE, seed)
        assert prepared.rows.constrained is not None
        taken, heavy = prepared.all_rows.run(TakeScan(prepared.rows.constrained[places]))
        numbers = np.arange(1, len(places) + 1)
        free_weight = float(sample.weights[free].sum())
        record = RowRecord(
            np.concatenate([sample.stored[free], taken]),
            np.concatenate([sample.weights[free], heavy]).astype(sample.dtype),
            np.concatenate([np.zeros(int(free.sum()), np.int64), numbers]),
        )
        sample = SampleRows(record, sample.leaf_rows)
    else:
        free_weight = float(sample.weights[free].sum())
    weights = weights[places]
    shape = loss_shape(settings, free_weight, float(weights.sum()), fraction)
    return RaceRows(sample, shape, rules.constrained_rows(weights, shape, settings), rules)


def _restricted(c: Constraints, places: np.ndarray) -> Constraints:
    """The constraints between some of the constrained rows, whole components of them."""
    new = np.full(len(c.rows), -1)
    new[places] = np.arange(len(places))
    must, cannot = new[c.must], new[c.cannot]
    some, others = must[:, 0] >= 0, cannot[:, 0] >= 0
    return Constraints(
        c.n_rows,
        c.rows[places],
        must[some],
        cannot[others],
        c.must_weights[some],
        c.cannot_weights[others],
    )
