"""Some rows of any input and their labels, for pictures."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pandas as pd
import scipy.sparse as sp

from dmkc.contingency import contingency
from dmkc.data import Lazy, Rows, as_rows
from dmkc.scan.survey import sample_positions
from dmkc.typing import PerRow, TableLike

BLOCK_ROWS = 65_536


def sample(X: TableLike, max_points: int = 5000, seed: int = 0) -> tuple[np.ndarray, Any]:
    """Numbers and values of uniformly drawn rows; only these leave the block they were read in.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import plot
    >>> positions, rows = plot.sample(np.arange(20.0).reshape(10, 2), max_points=3)
    >>> positions.shape, rows.shape
    ((3,), (3, 2))
    """
    rows = as_rows(X)
    positions = sample_positions(rows.n_rows, max_points, seed)
    return positions, rows_at(rows, positions)


def rows_at(rows: Rows, positions: np.ndarray) -> Any:
    """Values of the rows of these numbers, which are in order."""
    parts: list[Any] = []
    for block in rows.blocks(BLOCK_ROWS):
        low, high = np.searchsorted(positions, [block.start, block.stop])
        if low < high:
            values: Any = block.delayed if isinstance(block, Lazy) else block.load()
            parts.append(values[positions[low:high] - block.start])
    parts = list(dask.compute(*parts))
    drawn = sp.vstack(parts, format="csr") if rows.sparse else np.concatenate(parts)
    if rows.column_names is not None:
        frame = pd.DataFrame.sparse.from_spmatrix if rows.sparse else pd.DataFrame
        drawn = frame(drawn, columns=list(rows.column_names))
    return drawn


def take(values: Any, positions: np.ndarray) -> np.ndarray:
    """The values of some rows of a vector in memory or on a cluster.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from dmkc import plot
    >>> plot.take(da.arange(10, chunks=4), np.array([1, 8]))
    array([1, 8])
    """
    if hasattr(values, "to_dask_array"):
        values = values.to_dask_array(lengths=True)
    return np.asarray((values if hasattr(values, "dask") else np.asarray(values))[positions])


def cluster_sizes(labels: PerRow, n_clusters: int) -> np.ndarray:
    """Rows of every cluster, counted block by block where the labels are distributed.

    Noise, whose label is -1, is left out.

    Examples
    --------
    >>> from dmkc import plot
    >>> plot.cluster_sizes([0, 0, 1], 3)
    array([2, 1, 0])
    """
    return sizes_and_noise(labels, n_clusters)[0]


def sizes_and_noise(labels: PerRow, n_clusters: int) -> tuple[np.ndarray, int]:
    """Rows of every cluster, and rows of noise, whose label is -1."""
    counted = contingency(labels, labels)
    clusters, counts = counted.clusters.astype(int), counted.table.sum(axis=0)
    sizes = np.zeros(max(n_clusters, int(clusters.max()) + 1), dtype=np.int64)
    sizes[clusters[clusters >= 0]] = counts[clusters >= 0]
    return sizes, int(counts[clusters < 0].sum())
