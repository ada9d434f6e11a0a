"""An engine that writes down what its scans find, and knows what earlier ones found.

A fit is a sequence of scans, and all it does between them is a function of what they returned.  A
fit that is started again therefore asks the same questions and is given the recorded answers,
without a row being touched, until it asks one that was not answered before.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from dmkc.data import split_weights
from dmkc.resume.journal import CheckpointError, Journal
from dmkc.resume.records import NotRecordable, digest, from_bytes, to_bytes
from dmkc.scan.base import Scan, leaves
from dmkc.scan.engine import Block, Engine, Make
from dmkc.scan.grid import Grid, Node, fold_leaves

log = logging.getLogger("dmkc")

MOST_BYTES = 64 << 20
"""A statistic beyond this size is not written; a resumed run makes it again."""


@dataclass(frozen=True)
class Audited(Scan):
    """A scan that also takes the fingerprint of all rows: a tree of hashes over the leaves."""

    scan: Scan

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.scan.name

    def block(self, rows: Any, first_row: int, leaf_rows: int) -> tuple[bytes, Node]:
        prints = (_fingerprint(leaf) for leaf, _ in leaves(rows, first_row, leaf_rows))
        return fold_leaves(prints, _joined), self.scan.block(rows, first_row, leaf_rows)

    def merge(self, left: tuple[bytes, Node], right: tuple[bytes, Node]) -> tuple[bytes, Node]:
        return _joined(left[0], right[0]), self.scan.merge(left[1], right[1])


def _fingerprint(leaf: Any) -> bytes:
    rows, weights = split_weights(leaf)
    if sp.issparse(rows):
        parts = [rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)]
    else:
        parts = [rows]
    state = hashlib.blake2b(repr((rows.shape, rows.dtype.str)).encode(), digest_size=16)
    for part in parts if weights is None else [*parts, weights]:
        state.update(np.ascontiguousarray(part).data)
    return state.digest()


def _joined(left: bytes, right: bytes) -> bytes:
    return hashlib.blake2b(left + right, digest_size=16).digest()


class _Batch:
    """Blocks that are made when a scan first needs them."""

    def __init__(self, make: Callable[[list[Block]], list[Block]], blocks: Sequence[Block]) -> None:
        self._make, self._blocks = make, list(blocks)
        self._made: list[Block] | None = None

    def made(self) -> list[Block]:
        if self._made is None:
            self._made = self._make(_real(self._blocks))
            self._blocks = []
        return self._made


@dataclass(frozen=True, eq=False)
class Pending:
    """A block that has not been made, because no scan has needed it."""

    batch: _Batch
    number: int
    start: int
    stop: int


def _real(blocks: Sequence[Block]) -> list[Block]:
    return [b.batch.made()[b.number] if isinstance(b, Pending) else b for b in blocks]


class RecordingEngine(Engine):
    """Another engine whose scans are written to a journal or answered from it."""

    def __init__(self, inner: Engine, journal: Journal, audited: bool = False) -> None:
        self._inner, self._journal, self._audited = inner, journal, audited
        self.threads, self.memory = inner.threads, inner.memory
        self.block_bytes, self.description = inner.block_bytes, inner.description
        self.here = inner.here

    def local(self) -> Engine:
        return RecordingEngine(self._inner.local(), self._journal, audited=True)

    def bring(self, blocks: Sequence[Block]) -> list[Block]:
        return self._later(self._inner.bring, blocks)

    def hold(self, make: Make, blocks: Sequence[Block], name: str) -> list[Block]:
        return self._later(lambda ready: self._inner.hold(make, ready, name), blocks)

    def collect(self, func: Make, blocks: Sequence[Block], name: str) -> list[Any]:
        return self._inner.collect(func, _real(blocks), name)

    def _later(
        self, make: Callable[[list[Block]], list[Block]], blocks: Sequence[Block]
    ) -> list[Block]:
        """Blocks made now, or, while answers come from the journal, when a scan needs them."""
        if not self._journal.replaying:
            return make(_real(blocks))
        batch = _Batch(make, blocks)
        return [Pending(batch, i, b.start, b.stop) for i, b in enumerate(blocks)]

    def scan(self, scan: Scan, blocks: Sequence[Block], grid: Grid) -> Node:
        if not scan.recorded:
            return self._inner.scan(scan, _real(blocks), grid)
        question = digest(scan.name, scan.question, grid.n_rows, grid.leaf_rows)
        if not self._audited:
            return self._first_scan(scan, blocks, grid, question)
        if self._journal.replaying:
            record = self._journal.read()
            if record.get("scan") == scan.name and record.get("question") == question:
                if "answer" in record:
                    return record["answer"]
                return self._inner.scan(scan, _real(blocks), grid)  # too large to be recorded
            log.warning(
                "The recorded run took another course from here on (other versions or another "
                "kind of machine?); the fit goes on by itself."
            )
            self._journal.forget_rest()
        return self._written(scan, question, self._inner.scan(scan, _real(blocks), grid))

    def _first_scan(self, scan: Scan, blocks: Sequence[Block], grid: Grid, question: str) -> Node:
        """The first scan of a fit is always run: it shows whether the rows are still the same."""
        self._audited = True
        fingerprint, node = self._inner.scan(Audited(scan), _real(blocks), grid)
        if self._journal.replaying:
            record = self._journal.read()
            if record.get("rows") != fingerprint.hex() or record.get("n_rows") != grid.n_rows:
                raise CheckpointError(
                    f"The run in {self._journal.folder} was made of other rows than these; give "
                    "it the same rows, or choose another folder."
                )
        else:
            self._journal.append(to_bytes({"rows": fingerprint.hex(), "n_rows": grid.n_rows}))
        if self._journal.replaying:
            record = self._journal.read()
            if record.get("question") == question:
                return node
            self._journal.forget_rest()
        self._written(scan, question, node)
        return node

    def _written(self, scan: Scan, question: str, node: Node) -> Node:
        """Write an answer, and give it as it will be read: the same bits in the same layout."""
        record = {"scan": scan.name, "question": question}
        try:
            whole = to_bytes({**record, "answer": node})
        except NotRecordable as problem:
            log.warning("The scan %r is not recorded: it returns %s.", scan.name, problem)
            whole = b""
        if not 0 < len(whole) <= MOST_BYTES:
            self._journal.append(to_bytes(record))
            return node
        self._journal.append(whole)
        return from_bytes(whole)["answer"]
