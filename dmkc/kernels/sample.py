"""What a kernel is fitted on: a sample of the rows, as the kernel sees them, and scans if it asks.

Everything is found when it is first asked for, so that a bank pays for what its kernels use.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dmkc.data import RowRecord
from dmkc.importing import Later
from dmkc.kernels.tiles import Scaling
from dmkc.scan.assign import Centroids, FarScan, Frame
from dmkc.scan.base import Scan
from dmkc.scan.grid import Node, leaf_rows_for

if TYPE_CHECKING:
    from dmkc.kernels.base import Kernel

Made = TypeVar("Made")
cluster, pairwise = Later("sklearn.cluster"), Later("sklearn.metrics.pairwise")
distance = Later("scipy.spatial.distance")

CHOICES = ("uniform", "kmeans")
MEDIAN_ROWS = 1000
DOUBLE = np.dtype(np.float64)


def choose_landmarks(how: str, sample: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Standardised landmarks, distinct: sampled rows or centroids."""
    rng = np.random.default_rng([seed, 2])
    if how == "kmeans" and len(sample) > size:
        centres = cluster.KMeans(size, n_init=1, random_state=seed % 2**32, max_iter=20).fit(sample)
        return np.unique(centres.cluster_centers_, axis=0)
    order = rng.permutation(len(sample))
    _, first = np.unique(sample[order[: 4 * size]], axis=0, return_index=True)
    chosen = sample[order[np.sort(first)[:size]]]
    return np.unique(chosen, axis=0)  # sorted: the same set of rows always gives the same map


@dataclass
class KernelSample:
    """Sampled rows, shifted and scaled, of the columns that a kernel sees."""

    rows: np.ndarray
    """Standardised, float64."""
    weights: np.ndarray = field(default_factory=lambda: np.ones(0))
    """Their weights; by default 1."""
    n_landmarks: int = 100
    """How many landmarks there may be."""
    landmark_choice: Any = "uniform"
    """How they are chosen: a name, or the (standardised) points themselves."""
    seed: int = 0
    scaling: Scaling | None = None
    """How the rows were shifted and scaled."""
    sparse: bool = False
    """Whether all rows come as sparse matrices."""
    run: Callable[[Scan], Node] | None = None
    """Runs a scan over all rows (as they came, of the columns that the kernel sees)."""
    here: Callable[[Scan, RowRecord], Node] | None = None
    """Runs a scan over some rows in this process, in threads."""
    kernels: tuple[Kernel, ...] = ()
    """All kernels that see these columns, for what they can find together."""
    n_clusters: int = 2
    """How many are looked for, or the fewest of them."""
    dtype: np.dtype = DOUBLE
    """The precision of stored values."""
    _found: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not len(self.weights):
            self.weights = np.ones(len(self.rows))

    @property
    def n_columns(self) -> int:
        return self.rows.shape[1]

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Something that several kernels of these columns need, made when first asked for."""
        if key not in self._found:
            self._found[key] = make()
        return self._found[key]

    def run_on_all(self, scan: Scan) -> Node:
        """The statistic of all rows; of the sample where there are no others."""
        if self.run is not None:
            return self.run(scan)
        return self.run_here(scan, RowRecord(self.rows, self.weights))

    def run_here(self, scan: Scan, rows: RowRecord) -> Node:
        """The statistic of some rows in this process."""
        if self.here is not None:
            return self.here(scan, rows)
        return scan.block(rows, 0, leaf_rows_for(rows.shape[1]))

    @cached_property
    def landmarks(self) -> np.ndarray:
        """Landmarks, the same array for all kernels that see these columns."""
        if not isinstance(self.landmark_choice, str):
            return self.landmark_choice
        heavy = self.rows[self.weights > 0]
        return choose_landmarks(self.landmark_choice, heavy, self.n_landmarks, self.seed)

    @cached_property
    def median_squared(self) -> float:
        """Median squared Euclidean distance between rows; a row of weight 2 counts twice."""
        few, first, second, pairs, itself = self._pairs
        return _median(
            pairwise.euclidean_distances(few, squared=True)[first, second], pairs, itself
        )

    @cached_property
    def median_manhattan(self) -> float:
        """Median Manhattan distance between rows."""
        few, _, _, pairs, itself = self._pairs
        return _median(distance.pdist(few, "cityblock"), pairs, itself)

    @cached_property
    def largest_squared(self) -> float:
        """The largest squared distance between all rows, nearly, by two scans.

        It is that of the row farthest from the mean to the row farthest from it.
        """
        if self.run is None or self.scaling is None:
            return float(pairwise.euclidean_distances(self.rows, squared=True).max()) or 1.0
        shift, factor = self.scaling.shift, self.scaling.factor
        frame = Frame(np.empty(0) if self.sparse else shift, factor, np.dtype(np.float64))
        point = shift * factor if self.sparse else np.zeros_like(shift)
        for _ in range(2):
            _, _, rows, _, _, distances = self.run(FarScan(Centroids(frame, point[None, None]), 1))
            point = rows[0]
        return float(distances[0]) or 1.0

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
        """Some rows, their pairs with weights, and the weight of repeated rows with themselves."""
        some = np.flatnonzero(self.weights > 0)
        if len(some) > MEDIAN_ROWS:
            some = some[np.linspace(0, len(some) - 1, MEDIAN_ROWS).astype(int)]
        weights = self.weights[some]
        first, second = np.triu_indices(len(some), 1)
        itself = float(np.maximum(weights * (weights - 1.0) / 2.0, 0.0).sum())
        return self.rows[some], first, second, weights[first] * weights[second], itself


def _median(distances: np.ndarray, weights: np.ndarray, zeros: float) -> float:
    """The median, of the non-zero distances if more than half of the rows coincide."""
    positive = distances > 0
    if not positive.any():
        return 1.0
    every = np.append(distances, 0.0), np.append(weights, zeros)
    middle = weighted_median(*every)
    return middle if middle > 0 else weighted_median(distances[positive], weights[positive])


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """The median of values that are repeated as often as their weights say."""
    if np.all(weights[:-1] == 1) and weights[-1] == 0:
        return float(np.median(values[:-1]))
    order = np.argsort(values, kind="stable")
    values, reach = values[order], np.cumsum(weights[order])
    half = reach[-1] / 2.0
    at = int(np.searchsorted(reach, half * (1.0 - 1e-12)))
    if reach[at] <= half * (1.0 + 1e-12):  # the middle lies between two values
        after = int(np.searchsorted(reach, half * (1.0 + 1e-12), side="right"))
        return float(values[at] + values[min(after, len(values) - 1)]) / 2.0
    return float(values[at])
