"""Applying a model to rows: scores, labels and features, in the form the rows came in.

In-memory rows are answered at once; Dask arrays, frames and Zarr paths are answered lazily, block
by block, so that labels never gather anywhere unless the user says so.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from dask.highlevelgraph import HighLevelGraph

from dmkc.compiled import compiled
from dmkc.data import BlockRows, Lazy, RowRecord, Rows
from dmkc.data.rows import scan_width
from dmkc.kernels import FeatureMap
from dmkc.scan.base import LeafMap, MappedAnswer
from dmkc.scan.cuts import Affine
from dmkc.scan.engine import Block, ThreadEngine, load, metered, one_blas_thread
from dmkc.scan.grid import Grid

if TYPE_CHECKING:
    import dask.array as da

Labeler: TypeAlias = Callable[[BlockRows], np.ndarray]
"""From the rows of a block to an answer for each."""
BLOCK_BYTES = 8 << 20
"""Rows of a task, about: some tens of milliseconds."""


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
    """Scores of one or more models for what is stored of a block."""

    w: np.ndarray
    b: np.ndarray

    @classmethod
    def of(cls, models: list[Affine], dtype: np.dtype) -> Scorer:
        return cls(np.array([m.w for m in models], dtype), np.array([m.b for m in models], dtype))

    def __call__(self, stored: RowRecord) -> np.ndarray:
        out = np.empty((len(stored), len(self.b)), stored.rows.dtype)
        _scores(stored.rows, self.w, self.b, out)
        return out


@dataclass(frozen=True)
class Decide:
    """Labels from scores: the side of zero for one model, the largest of several."""

    scorer: Scorer

    def __call__(self, stored: RowRecord) -> np.ndarray:
        scores = self.scorer(stored)
        if scores.shape[1] == 1:
            return (scores[:, 0] >= 0).astype(np.int32)
        return scores.argmax(axis=1).astype(np.int32)


@dataclass(frozen=True)
class Nearest:
    """Labels from signed distances to planes: the nearest plane."""

    scorer: Scorer

    def __call__(self, stored: RowRecord) -> np.ndarray:
        return np.abs(self.scorer(stored)).argmin(axis=1).astype(np.int32)


@dataclass(frozen=True)
class Nearness:
    """How much nearer the second of two planes is than the first; for several, less distance."""

    scorer: Scorer

    def __call__(self, stored: RowRecord) -> np.ndarray:
        distance = np.abs(self.scorer(stored))
        return distance[:, 0] - distance[:, 1] if distance.shape[1] == 2 else -distance


@dataclass(frozen=True)
class Single:
    """The one column of a single model's scores."""

    scorer: Scorer

    def __call__(self, stored: RowRecord) -> np.ndarray:
        return self.scorer(stored)[:, 0]


@dataclass(frozen=True)
class WeightedFeatures:
    """Features whose inner products are the learned kernel."""

    features: FeatureMap
    root_weights: np.ndarray

    def __call__(self, stored: RowRecord) -> np.ndarray:
        return (self.features.features(stored.rows) * self.root_weights).astype(stored.rows.dtype)


class RowMap(LeafMap, Protocol):
    """Makes what an answer is computed from, of rows in leaves of a fixed size."""

    @property
    def width(self) -> int: ...

    @property
    def leaf_rows(self) -> int: ...

    @property
    def dtype(self) -> np.dtype: ...


@dataclass(frozen=True)
class RawColumns:
    """Rows as they are."""

    width: int
    leaf_rows: int
    dtype: np.dtype

    def room(self, n_rows: int) -> None:
        return None

    def __call__(self, rows: BlockRows, out: np.ndarray | None = None) -> Any:
        return rows


@dataclass(frozen=True)
class SomeFeatures:
    """Some of the features."""

    features: FeatureMap
    chosen: np.ndarray

    def __call__(self, stored: RowRecord) -> np.ndarray:
        return self.features.features(stored.rows)[:, self.chosen].astype(stored.rows.dtype)


@dataclass(frozen=True)
class Pipeline:
    """Rows to records to an answer, in one task; one leaf at a time is in memory."""

    plan: RowMap
    answer: Callable[[RowRecord], np.ndarray]

    def __call__(self, rows: BlockRows) -> np.ndarray:
        n = rows.shape[0]
        # sparse rows need a large product for every call, dense ones nothing
        step = n if sp.issparse(rows) else self.plan.leaf_rows
        with one_blas_thread():
            return MappedAnswer(self.plan, self.answer, step)(rows)


@dataclass(frozen=True)
class Known:
    """Labels of some rows that are not left to the model."""

    rows: np.ndarray
    """Global row numbers, ascending."""
    labels: np.ndarray


@dataclass(frozen=True)
class Corrected:
    """A pipeline whose answers are known at some places."""

    pipeline: Labeler
    places: np.ndarray
    labels: np.ndarray

    def __call__(self, rows: BlockRows) -> np.ndarray:
        answers = self.pipeline(rows)
        answers[self.places] = self.labels
        return answers


def for_block(pipeline: Labeler, known: Known | None, block: Block) -> Labeler:
    """The pipeline for one block, with the labels that are known of its rows."""
    if known is None:
        return pipeline
    lo, hi = np.searchsorted(known.rows, [block.start, block.stop])
    if lo == hi:
        return pipeline
    return Corrected(pipeline, known.rows[lo:hi] - block.start, known.labels[lo:hi])


def apply(
    rows: Rows,
    pipeline: Pipeline,
    dtype: np.dtype,
    n_out: int | None,
    name: str = "label",
    known: Known | None = None,
    columns: Sequence[str] | None = None,
) -> Any:
    """The answers for all rows in the rows' own form; `columns` name those of several a row."""
    engine = metered(ThreadEngine())
    width = max(scan_width(rows), n_out or 1)
    if rows.sparse:
        width = max(width, pipeline.plan.width)
    blocks = rows.blocks(block_rows(rows, width, pipeline.plan.leaf_rows, engine.threads))
    if rows.container.lazy:
        found = lazily(blocks, pipeline, dtype, n_out, known, name)
        return rows.container.wrap(found, name, columns)
    values = np.concatenate(engine.collect(pipeline, blocks, "predict"))
    if known is not None:
        values[known.rows] = known.labels
    return rows.container.wrap(values, name, columns)


def block_rows(rows: Rows, width: int, leaf_rows: int, threads: int) -> int:
    """Rows that one task labels: whole chunks of the input wherever these are whole leaves."""
    chunks = rows.container.row_chunks or (0,)
    chunk = chunks[0]
    if chunk and chunk % leaf_rows == 0 and set(chunks[:-1]) <= {chunk} and chunks[-1] <= chunk:
        by_bytes = BLOCK_BYTES // (chunk * width * 8)
        return chunk * max(1, min(by_bytes, len(chunks) // (4 * threads)))
    return Grid.plan(rows.n_rows, 2 * width, BLOCK_BYTES, threads, leaf_rows).block_rows


def lazily(
    blocks: list[Block],
    pipeline: Labeler,
    dtype: np.dtype,
    n_out: int | None,
    known: Known | None = None,
    name: str = "label",
) -> da.Array:
    """The answers as a Dask array with a chunk per block."""
    from dmkc.data.answers import Answers  # slow to import, not needed where nothing is lazy

    tail = () if n_out is None else (n_out,)
    layer = f"{name}-{uuid.uuid4().hex}"
    # bare calls: Dask would take a pipeline apart in search of other tasks, for every block
    graph: dict[Any, Any] = {
        (layer, i, *(0 for _ in tail)): _call(for_block(pipeline, known, b), b)
        for i, b in enumerate(blocks)
    }
    inputs: list[Any] = [b.delayed for b in blocks if isinstance(b, Lazy)]
    chunks = (tuple(b.stop - b.start for b in blocks), *((size,) for size in tail))
    whole = HighLevelGraph.from_collections(layer, graph, dependencies=inputs)
    return Answers(whole, layer, chunks, dtype=dtype)


def _call(pipeline: Labeler, block: Block) -> tuple:
    """A task that answers one block."""
    if isinstance(block, Lazy):
        return (partial(_answer, pipeline), block.delayed.key)
    return (partial(_load_and_answer, pipeline, block),)


def _answer(pipeline: Labeler, values: Any) -> np.ndarray:
    return pipeline(values)


def _load_and_answer(pipeline: Labeler, block: Block) -> np.ndarray:
    return pipeline(load(block))
