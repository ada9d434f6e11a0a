"""What a scan is: a pure function of a block of rows and a few small models.

A scan holds everything it needs (it travels to the workers), knows nothing of Dask, and returns
a small statistic.  `block` gives the statistic of an aligned run of leaves; `merge` adds two
neighbouring ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from dmkc.data import BlockRows, RowRecord, as_record
from dmkc.data.record import joined
from dmkc.scan.grid import Node, fold_leaves


class Sliceable(Protocol):
    """Rows, bare or as a record."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, which: slice, /) -> Self: ...


Sliced = TypeVar("Sliced", bound=Sliceable)


class Scan(ABC):
    """One pass over all rows that ends in one small statistic."""

    name: str = "scan"
    recorded: bool = True
    """Whether what it returns is all it does; a scan that also writes something must be run."""

    @abstractmethod
    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        """The statistic of these rows, which start at global row `first_row`."""

    @property
    def question(self) -> Any:
        """What its answer depends on, beside the rows."""
        return self

    def merge(self, left: Node, right: Node) -> Node:
        """The statistic of two neighbouring runs of rows; sums unless said otherwise."""
        return tuple(a + b for a, b in zip(left, right, strict=True))


def leaves(rows: Sliced, first_row: int, leaf_rows: int) -> Iterator[tuple[Sliced, int]]:
    """The leaves of a block, each with its first global row."""
    for start in range(0, rows.shape[0], leaf_rows):
        yield rows[start : start + leaf_rows], first_row + start


class LeafMap(Protocol):
    """Makes what is scanned, or answered from, of the rows of a leaf."""

    def room(self, n_rows: int) -> np.ndarray | None:
        """Where it may write what it makes of so many rows; None if it needs no room."""
        ...

    def __call__(self, rows: Any, /, out: np.ndarray | None = None) -> Any: ...


@dataclass(frozen=True)
class MappedScan(Scan):
    """A scan of rows that are first mapped leaf by leaf (features made anew on every pass).

    All leaves of a block are made in the same place: fresh memory for each would cost as much as
    what is written to it.  So nodes must not hold on to the rows that a scan is given.
    """

    make: LeafMap
    scan: Scan

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.scan.name

    @property
    def question(self) -> Any:
        return self.scan.question  # the same, whether columns are kept or made anew

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        room = self.make.room(min(leaf_rows, rows.shape[0]))
        parts = (
            self.scan.block(self.make(leaf, room), first, leaf_rows)
            for leaf, first in leaves(rows, first_row, leaf_rows)
        )
        return fold_leaves(parts, self.scan.merge)

    def merge(self, left: Node, right: Node) -> Node:
        return self.scan.merge(left, right)


@dataclass(frozen=True)
class MappedAnswer:
    """What is made of every row of a block, from rows that are first mapped leaf by leaf.

    Here, too, all leaves are made in the same place, so answers must not be views of them.
    """

    make: LeafMap
    answer: Callable[[Any], Any]
    """From a leaf to a value for every row, or to a record."""
    leaf_rows: int

    def __call__(self, rows: BlockRows) -> Any:
        room = self.make.room(min(self.leaf_rows, rows.shape[0]))
        mapped = (self.make(leaf, room) for leaf, _ in leaves(rows, 0, self.leaf_rows))
        return joined([self.answer(record) for record in mapped])


class LeafScan(Scan):
    """A scan that is written as the statistic of one leaf."""

    @abstractmethod
    def leaf(self, record: RowRecord) -> Node:
        """The statistic of the rows of one leaf."""

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        parts = (self.leaf(leaf) for leaf, _ in leaves(as_record(rows), first_row, leaf_rows))
        return fold_leaves(parts, self.merge)
