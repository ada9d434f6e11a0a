"""Rows that can be scanned: all of them, wherever they live, or a sample in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.data import BlockRows, RowRecord
from dmkc.scan.base import LeafMap, MappedAnswer, MappedScan, Scan
from dmkc.scan.cuts import Affine, CutRequest
from dmkc.scan.engine import Block, Engine, Make, one_blas_thread
from dmkc.scan.grid import Grid, Node
from dmkc.scan.requests import Answer, GivenLabels, Request


class RowSet(ABC):
    """Records of what is stored of rows, behind one function: run a scan over all of them."""

    n_rows: int
    width: int
    dtype: np.dtype
    n_scans: int

    @abstractmethod
    def run(self, scan: Scan) -> Node:
        """The statistic of all rows."""

    @abstractmethod
    def collect(self, func: Make, name: str) -> np.ndarray:
        """The values of a function of records for every row, in this process."""

    def answer(self, requests: Sequence[Request[Answer]]) -> list[Answer]:
        """What several fits ask for; requests of one kind are answered by one scan."""
        found: dict[int, Answer] = {}
        for kind in dict.fromkeys(type(request) for request in requests):
            asked = {k: request for k, request in enumerate(requests) if type(request) is kind}
            scan = kind.shared_scan(list(asked.values()), self.dtype)
            found.update(zip(asked, scan.unpack(self.run(scan)), strict=True))
        return [found[k] for k in range(len(requests))]

    def ask(self, request: Request[Answer]) -> Answer:
        """The answer to a single request."""
        return self.answer([request])[0]

    def stored_mean(self) -> np.ndarray:
        """Mean of the stored values: the cut of the zero model when every row is on one side."""
        everyone = Affine(np.zeros(self.width), 1.0)
        nothing = Affine(np.zeros(self.width), 0.0)
        (sums,) = self.ask(CutRequest(everyone, (nothing,)))
        return sums.row_sum / sums.total


@dataclass(frozen=True)
class Composed:
    """One function after another, as one task."""

    first: LeafMap
    then: Make

    def room(self, n_rows: int) -> np.ndarray | None:
        return self.first.room(n_rows)

    def __call__(self, rows: BlockRows, out: np.ndarray | None = None) -> Any:
        return self.then(self.first(rows, out))


@dataclass
class SpreadRows(RowSet):
    """All rows, in blocks on an engine."""

    engine: Engine
    grid: Grid
    blocks: Sequence[Block]
    width: int
    dtype: np.dtype
    make: LeafMap | None
    """Makes what is scanned anew on every scan; None when the blocks hold it already."""
    n_scans: int = 0

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return self.grid.n_rows

    def run(self, scan: Scan) -> Node:
        self.n_scans += 1
        whole = scan if self.make is None else MappedScan(self.make, scan)
        return self.engine.scan(whole, self.blocks, self.grid)

    def collect(self, func: Make, name: str) -> np.ndarray:
        self.n_scans += 1
        whole = func if self.make is None else MappedAnswer(self.make, func, self.grid.leaf_rows)
        return np.concatenate(self.engine.collect(whole, self.blocks, name))


@dataclass
class SampleRows(RowSet):
    """A few thousand rows in this process.

    A labeling that no model describes (a start) is one more column of their labels, so that scans
    need no labels beside the record.
    """

    record: RowRecord
    leaf_rows: int
    n_scans: int = 0

    @property
    def stored(self) -> np.ndarray:
        """What is stored of the rows."""
        return self.record.rows

    @property
    def weights(self) -> np.ndarray:
        return self.record.weights_in(np.dtype(np.float64))

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return len(self.record)

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.stored.shape[1]

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        return self.stored.dtype

    def run(self, scan: Scan) -> Node:
        self.n_scans += 1
        with one_blas_thread():
            return scan.block(self.record, 0, self.leaf_rows)

    def collect(self, func: Make, name: str) -> np.ndarray:
        self.n_scans += 1
        return func(self.record)

    def with_labelings(
        self, labelings: Sequence[np.ndarray]
    ) -> tuple[SampleRows, list[GivenLabels]]:
        """The same rows with these cluster numbers, and how to ask for each of them."""
        labels = np.stack(labelings, axis=1).astype(np.int32)
        asked = [GivenLabels(column) for column in range(len(labelings))]
        return SampleRows(replace(self.record, labels=labels), self.leaf_rows), asked
