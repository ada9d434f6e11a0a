"""The rows of a Dask array in other chunks, by tasks that need nothing but NumPy.

The tasks of Dask's own `rechunk` are functions of `dask.array`.  A worker that has had none of them
yet would import it, and with it pandas and xarray where these are installed: about a second.
"""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.highlevelgraph import HighLevelGraph

if TYPE_CHECKING:
    import dask.array as da

Cut = Callable[[Any, int, int], Any]
"""Rows [low, high) of a chunk."""
Join = Callable[[list[list[Any]]], Any]
"""One piece from many, in rows of pieces that lie side by side: whole chunks, or cut ones."""


def recut(
    array: da.Array, heights: Sequence[int], cut: Cut, join: Join
) -> tuple[HighLevelGraph, list[tuple]]:
    """A graph whose pieces have these numbers of rows and all columns, and its keys.

    Only neighbouring rows are moved, and of a chunk that is cut only what is needed of it.
    """
    name = uuid.uuid4().hex
    layer, cuts = f"join-rows-{name}", f"cut-rows-{name}"
    chunks: list[Any] = [row if array.ndim > 1 else [row] for row in array.__dask_keys__()]
    graph: dict[Any, Any] = {}
    whole: Any = array
    keys = [(layer, place, *(0,) * (array.ndim - 1)) for place in range(len(heights))]
    for key, parts in zip(keys, _overlaps(array.chunks[0], heights), strict=True):
        pieces = []
        for index, low, high in parts:
            row = chunks[index]
            if high - low < array.chunks[0][index]:
                names = [(cuts, len(graph) + i) for i in range(len(row))]
                take = partial(_cut, cut, low, high)
                graph.update({new: (take, old) for new, old in zip(names, row, strict=True)})
                row = names
            pieces.append(row)
        graph[key] = (join, pieces)
    return HighLevelGraph.from_collections(layer, graph, dependencies=[whole]), keys


def in_chunks(array: da.Array, heights: Sequence[int]) -> da.Array:
    """The same array with chunks of these numbers of rows and all columns."""
    from dmkc.data.answers import Answers

    whole = tuple((size,) for size in array.shape[1:])
    chunks = (tuple(heights), *whole)
    if array.chunks == chunks:
        return array
    graph, keys = recut(array, heights, _rows_of, joined)
    return Answers(graph, keys[0][0], chunks, meta=array._meta)


def joined(pieces: list[list[np.ndarray]]) -> np.ndarray:
    """One array from rows of pieces that lie side by side."""
    rows = [row[0] if len(row) == 1 else np.concatenate(row, axis=1) for row in pieces]
    return rows[0] if len(rows) == 1 else np.concatenate(rows)


def gathered(chunks: list[Any]) -> np.ndarray:
    """The whole of an array from all its chunks, as `dask.array` hands it out: it is a new one."""
    rows = [row if isinstance(row, list) else [row] for row in chunks]
    whole = joined(rows)
    return whole.copy() if whole is rows[0][0] else whole


def _overlaps(old: Sequence[int], new: Sequence[int]) -> Iterator[list[tuple[int, int, int]]]:
    """Of every new chunk the old ones that it is made of, and which of their rows it takes."""
    edges = [0, *accumulate(old)]
    start = 0
    for height in new:
        stop = start + height
        index = min(bisect_right(edges, start), len(old)) - 1
        parts = [] if height else [(index, 0, 0)]
        while index < len(old) and edges[index] < stop:
            first, last = edges[index], edges[index + 1]
            low, high = max(start, first) - first, min(stop, last) - first
            if low < high:
                parts.append((index, low, high))
            index += 1
        yield parts
        start = stop


def _cut(cut: Cut, low: int, high: int, chunk: Any) -> Any:
    return cut(chunk, low, high)


def _rows_of(chunk: np.ndarray, low: int, high: int) -> np.ndarray:
    return chunk[low:high]
