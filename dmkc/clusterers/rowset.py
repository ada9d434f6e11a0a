"""Rows that can be scanned: all of them, wherever they live, or a sample in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.kernels.plan import padded
from dmkc.scan.base import Scan, Through
from dmkc.scan.cuts import Affine, CutRequest
from dmkc.scan.engine import Block, Engine
from dmkc.scan.grid import Grid, Node
from dmkc.scan.limits import one_blas_thread
from dmkc.scan.requests import Answer, Request, RowForm


class RowSet(ABC):
    """Rows as raw kernel columns, behind one function: run a scan over all of them."""

    n_rows: int
    width: int
    dtype: np.dtype
    n_scans: int
    weight_at: int
    """The column that holds the rows' weights; negative: every row weighs 1."""

    @abstractmethod
    def run(self, scan: Scan) -> Node:
        """The statistic of all rows."""

    @abstractmethod
    def collect(self, func: Callable[[Any], Any], name: str) -> np.ndarray:
        """The values of a function of the columns for every row, in this process."""

    @property
    def form(self) -> RowForm:
        return RowForm(self.width, self.dtype, self.weight_at)

    def answer(self, requests: Sequence[Request[Answer]]) -> list[Answer]:
        """What several fits ask for; requests of one kind are answered by one scan."""
        found: dict[int, Answer] = {}
        for kind in dict.fromkeys(type(request) for request in requests):
            asked = {k: request for k, request in enumerate(requests) if type(request) is kind}
            scan = kind.shared_scan(list(asked.values()), self.form)
            found.update(zip(asked, scan.unpack(self.run(scan)), strict=True))
        return [found[k] for k in range(len(requests))]

    def ask(self, request: Request[Answer]) -> Answer:
        """The answer to a single request."""
        return self.answer([request])[0]

    def column_mean(self) -> np.ndarray:
        """Mean of the raw columns: the cut of the zero model when every row is on one side."""
        everyone = Affine(np.zeros(self.width), 1.0)
        nothing = Affine(np.zeros(self.width), 0.0)
        (sums,) = self.ask(CutRequest(everyone, (nothing,)))
        return sums.row_sum / sums.total


@dataclass(frozen=True)
class After:
    """One function after another, as one task."""

    first: Callable[[Any], Any]
    then: Callable[[Any], Any]

    def __call__(self, rows: Any) -> Any:
        return self.then(self.first(rows))


@dataclass
class SpreadRows(RowSet):
    """All rows, in blocks on an engine."""

    engine: Engine
    grid: Grid
    blocks: Sequence[Block]
    width: int
    dtype: np.dtype
    make: Callable[[Any], Any] | None
    """Makes the columns on every scan; None when the blocks are columns already."""
    weight_at: int = -1
    n_scans: int = 0

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return self.grid.n_rows

    def run(self, scan: Scan) -> Node:
        self.n_scans += 1
        whole = scan if self.make is None else Through(self.make, scan)
        return self.engine.scan(whole, self.blocks, self.grid)

    def collect(self, func: Callable[[Any], Any], name: str) -> np.ndarray:
        self.n_scans += 1
        whole = func if self.make is None else After(self.make, func)
        return np.concatenate(self.engine.collect(whole, self.blocks, name))


@dataclass
class SampleRows(RowSet):
    """A few thousand rows in this process, with labelings as extra columns.

    A labeling that no model describes (a start) becomes one more column of the matrix, so that
    scans need no labels beside the rows.
    """

    columns: np.ndarray
    leaf_rows: int
    weight_at: int = -1
    n_scans: int = 0

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return len(self.columns)

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.columns.shape[1]

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        return self.columns.dtype

    def run(self, scan: Scan) -> Node:
        self.n_scans += 1
        with one_blas_thread():
            return scan.block(self.columns, 0, self.leaf_rows)

    def collect(self, func: Callable[[Any], Any], name: str) -> np.ndarray:
        self.n_scans += 1
        return func(self.columns)

    def with_labelings(self, labelings: Sequence[np.ndarray]) -> tuple[SampleRows, list[int]]:
        """The same rows with these cluster numbers as extra columns, and where those are."""
        n, width = self.columns.shape
        columns = np.zeros((n, padded(width + len(labelings))), self.columns.dtype)
        columns[:, :width] = self.columns
        for k, labels in enumerate(labelings):
            columns[:, width + k] = labels
        places = [width + k for k in range(len(labelings))]
        return SampleRows(columns, self.leaf_rows, self.weight_at), places

    def of_weight_one(self, which: np.ndarray) -> SampleRows:
        """Some of the rows, each of weight 1."""
        columns = self.columns[which]
        if self.weight_at >= 0:
            columns[:, self.weight_at] = 1.0
        return SampleRows(columns, self.leaf_rows, self.weight_at)

    @property
    def weights(self) -> np.ndarray:
        """Weights of the rows."""
        if self.weight_at < 0:
            return np.ones(len(self.columns))
        return self.columns[:, self.weight_at].astype(np.float64)
