"""Applying a model to rows: scores, labels and features, in the form the rows came in.

In-memory rows are answered at once; Dask arrays, frames and Zarr paths are answered lazily, block
by block, so that labels never gather anywhere unless the user says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from dmkc.data import Lazy, Rows
from dmkc.data.rows import scan_width
from dmkc.kernels import ColumnMaker, FeatureMap
from dmkc.scan.compiled import compiled
from dmkc.scan.cuts import Affine
from dmkc.scan.engine import Block, ThreadEngine, load
from dmkc.scan.grid import Grid
from dmkc.scan.limits import one_blas_thread

BLOCK_BYTES = 32 << 20


@compiled
def _scores(columns, w, b, out):  # pragma: no cover - compiled
    for i in range(columns.shape[0]):
        for p in range(w.shape[0]):
            score = b[p]
            for j in range(w.shape[1]):
                score += columns[i, j] * w[p, j]
            out[i, p] = score


@dataclass(frozen=True)
class Scorer:
    """Scores of one or more models for a block of raw columns."""

    w: np.ndarray
    b: np.ndarray

    @classmethod
    def of(cls, models: list[Affine], dtype: np.dtype) -> Scorer:
        return cls(np.array([m.w for m in models], dtype), np.array([m.b for m in models], dtype))

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        out = np.empty((len(columns), len(self.b)), columns.dtype)
        _scores(columns, self.w, self.b, out)
        return out


@dataclass(frozen=True)
class Decide:
    """Labels from scores: the side of zero for one model, the largest of several."""

    scorer: Scorer

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        scores = self.scorer(columns)
        if scores.shape[1] == 1:
            return (scores[:, 0] >= 0).astype(np.int32)
        return scores.argmax(axis=1).astype(np.int32)


@dataclass(frozen=True)
class Single:
    """The one column of a single model's scores."""

    scorer: Scorer

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        return self.scorer(columns)[:, 0]


@dataclass(frozen=True)
class WeightedFeatures:
    """Features whose inner products are the learned kernel."""

    features: FeatureMap
    root_weights: np.ndarray

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        return (self.features.features(columns) * self.root_weights).astype(columns.dtype)


@dataclass(frozen=True)
class Pipeline:
    """Rows to columns to an answer, in one task."""

    columns: ColumnMaker
    answer: Callable[[np.ndarray], np.ndarray]

    def __call__(self, rows: Any) -> np.ndarray:
        with one_blas_thread():
            return self.answer(self.columns(rows))


def apply(
    rows: Rows, pipeline: Pipeline, dtype: np.dtype, n_out: int | None, name: str = "label"
) -> Any:
    """The answers for all rows in the rows' own form."""
    width = max(pipeline.columns.width, scan_width(rows))
    engine = ThreadEngine()
    leaf_rows = pipeline.columns.leaf_rows
    grid = Grid.plan(rows.n_rows, width, BLOCK_BYTES, engine.threads, leaf_rows)
    blocks = rows.blocks(grid.block_rows)
    if rows.container.lazy:
        return rows.container.wrap(lazily(blocks, pipeline, dtype, n_out), name=name)
    values = engine.collect(pipeline, blocks, "predict")
    return rows.container.wrap(np.concatenate(values), name=name)


def lazily(
    blocks: list[Block], pipeline: Callable[[Any], np.ndarray], dtype: np.dtype, n_out: int | None
) -> da.Array:
    """The answers as a Dask array with a chunk per block."""
    tail = () if n_out is None else (n_out,)
    run = delayed(pipeline, pure=False)
    read = delayed(_load_and, pure=False)
    parts = [
        da.from_delayed(
            run(b.delayed) if isinstance(b, Lazy) else read(pipeline, b),
            shape=(b.stop - b.start, *tail),
            dtype=dtype,
        )
        for b in blocks
    ]
    return da.concatenate(parts, axis=0)


def _load_and(pipeline: Callable[[Any], np.ndarray], block: Block) -> np.ndarray:
    return pipeline(load(block))
