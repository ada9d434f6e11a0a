"""The model of k-means: centroids, and how rows are compared with them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dmkc.clusterers.labelling import Pipeline, RawColumns
from dmkc.clusterers.model import shown_model
from dmkc.data import BlockRows, split_weights
from dmkc.kernels.tiles import check_finite
from dmkc.scan.assign import Centroids, Frame


@dataclass(frozen=True)
class NearestCentre:
    """The nearest centroid of every row."""

    centroids: Centroids

    def __call__(self, rows: BlockRows) -> np.ndarray:
        values = split_weights(rows)[0]
        labels, distances = self.centroids.nearest(values)
        check_finite(distances, values)
        return labels


@dataclass(frozen=True)
class NearestSquare:
    """The squared distance of every row to the nearest centroid."""

    centroids: Centroids

    def __call__(self, rows: BlockRows) -> np.ndarray:
        values = split_weights(rows)[0]
        _, squares = self.centroids.nearest(values)
        check_finite(squares, values)
        return squares


@dataclass(frozen=True)
class CentreDistances:
    """Distances of every row to all centroids."""

    centroids: Centroids

    def __call__(self, rows: BlockRows) -> np.ndarray:
        each = [
            Centroids(self.centroids.frame, centre[None, None])
            for centre in self.centroids.centres[0]
        ]
        squares = np.stack([one.nearest(rows)[1] for one in each], axis=1)
        check_finite(squares.sum(axis=1), rows)
        return np.sqrt(squares)


@dataclass(frozen=True)
class CentroidModel:
    """Centroids in a frame; labels are the nearest ones."""

    frame: Frame
    centres: np.ndarray
    """Clusters x columns, in the frame."""
    leaf_rows: int

    @property
    def n_clusters(self) -> int:
        return len(self.centres)

    @property
    def n_features(self) -> int:
        return len(self.centres)

    @property
    def centroids(self) -> Centroids:
        return Centroids(self.frame, self.centres[None])

    def in_order(self, order: np.ndarray) -> CentroidModel:
        """The same clusters in another order."""
        return replace(self, centres=self.centres[order])

    def label_pipeline(self) -> Pipeline:
        return Pipeline(self._columns(), NearestCentre(self.centroids))

    def distance_pipeline(self) -> Pipeline:
        return Pipeline(self._columns(), NearestSquare(self.centroids))

    def feature_pipeline(self) -> Pipeline:
        return Pipeline(self._columns(), CentreDistances(self.centroids))

    def __repr__(self) -> str:
        columns = self.centres.shape[1]
        return shown_model(self, f"in {columns} column", columns)

    def _columns(self) -> RawColumns:
        return RawColumns(self.centres.shape[1], self.leaf_rows, self.frame.dtype)
