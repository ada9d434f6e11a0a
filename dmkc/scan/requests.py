"""What a fit asks of a pass over rows: one protocol for request, shared scan and answer.

A fit yields a request and is sent its answer.  Requests of one kind, from however many fits, become
one scan, and that scan takes its result apart again, request by request.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from dmkc.data import BlockRows
from dmkc.scan.base import MappedScan, Scan
from dmkc.scan.grid import Node

Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)


@dataclass(frozen=True)
class GivenLabels:
    """A labeling that no model describes: a column of the labels that records carry."""

    column: int


class SharedScan(Scan, Generic[Answer_co]):
    """A scan that answers several requests."""

    @abstractmethod
    def unpack(self, node: Node) -> Sequence[Answer_co]:
        """The answers, request by request."""


class Request(Protocol[Answer_co]):
    """What one fit wants to know next."""

    @classmethod
    def shared_scan(cls, requests: Sequence[Self], dtype: np.dtype) -> SharedScan[Answer_co]:
        """One scan that answers all of these requests, of values in this precision."""


@dataclass(frozen=True)
class ScanRequest:
    """A request for the statistic of any scan, which has nothing to share with others."""

    scan: Scan

    @classmethod
    def shared_scan(cls, requests: Sequence[ScanRequest], dtype: np.dtype) -> SideBySide:
        return SideBySide(tuple(request.scan for request in requests))


@dataclass(frozen=True)
class SideBySide(SharedScan[Node]):
    """Several scans of the same rows in one pass."""

    scans: tuple[Scan, ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.scans[0].name

    @property
    def question(self) -> Any:
        return tuple(scan.question for scan in self.scans)

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        """Rows that several scans map in the same way are mapped once."""
        found: dict[int, Node] = {}
        for make in {id(make): make for make in map(_map_of, self.scans)}.values():
            here = {k: scan for k, scan in enumerate(self.scans) if _map_of(scan) is make}
            if make is None or len(here) == 1:
                nodes = [scan.block(rows, first_row, leaf_rows) for scan in here.values()]
            else:
                mapped: Any = here.values()
                inside = SideBySide(tuple(scan.scan for scan in mapped))
                nodes = MappedScan(make, inside).block(rows, first_row, leaf_rows)
            found.update(zip(here, nodes, strict=True))
        return tuple(found[k] for k in range(len(self.scans)))

    def merge(self, left: Node, right: Node) -> Node:
        parts = zip(self.scans, left, right, strict=True)
        return tuple(scan.merge(a, b) for scan, a, b in parts)

    def unpack(self, node: Node) -> Sequence[Node]:
        return node


def _map_of(scan: Scan) -> Any:
    """What rows are mapped by before a scan; None where they are scanned as they are."""
    return scan.make if isinstance(scan, MappedScan) else None
