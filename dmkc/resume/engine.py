"""`dmkc.checkpoint(folder)`: fits inside it can be killed at any instant and continued.

A fit is a sequence of scans, and all it does between them is a function of what they returned.  An
engine writes down what scans find.  A fit that is started again asks the same questions and is
given the recorded answers, without a row being touched, until it asks one that was not answered
before.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dmkc.data import BlockRows, split_weights
from dmkc.errors import UserError
from dmkc.resume.journal import (
    CheckpointError,
    Journal,
    NotRecordable,
    digest,
    from_bytes,
    to_bytes,
)
from dmkc.scan.base import Scan, leaves
from dmkc.scan.engine import Asked, Block, Engine, Make, recorder
from dmkc.scan.grid import Grid, Node, fold_leaves

log = logging.getLogger("dmkc")

MOST_BYTES = 64 << 20
"""A statistic beyond this size is not written; a resumed run makes it again."""
FREE = ("client", "verbose", "feature_mode", "store_path")
"""Parameters that may change between the parts of a run, since no label depends on them."""


@dataclass(frozen=True)
class Audited(Scan):
    """A scan that also takes the fingerprint of all rows: a tree of hashes over the leaves."""

    scan: Scan

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.scan.name

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> tuple[bytes, Node]:
        prints = (_fingerprint(leaf) for leaf, _ in leaves(rows, first_row, leaf_rows))
        return fold_leaves(prints, _joined), self.scan.block(rows, first_row, leaf_rows)

    def merge(self, left: tuple[bytes, Node], right: tuple[bytes, Node]) -> tuple[bytes, Node]:
        return _joined(left[0], right[0]), self.scan.merge(left[1], right[1])


def _fingerprint(leaf: BlockRows) -> bytes:
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
        question = _question(scan, grid)
        if not self._audited:
            return self._first_scan(scan, blocks, grid, question)
        if self._journal.replaying:
            record = self._journal.read()
            if record.get("scan") == scan.name and record.get("question") == question:
                if "answer" in record:
                    return record["answer"]
                return self._inner.scan(scan, _real(blocks), grid)  # too large to be recorded
            self._take_another_course()
        return self._written(scan, question, self._inner.scan(scan, _real(blocks), grid))

    def remember(self, name: str, make: Callable[[], Any]) -> Any:
        if self._journal.replaying:
            record = self._journal.read()
            if record.get("remembered") == name:
                return record["value"]
            self._take_another_course()
        whole = to_bytes({"remembered": name, "value": make()})
        self._journal.append(whole)
        return from_bytes(whole)["value"]

    def _take_another_course(self) -> None:
        log.warning(
            "The recorded run took another course from here on (other versions or another "
            "kind of machine?); the fit goes on by itself."
        )
        self._journal.forget_rest()

    def scan_together(self, asked: Sequence[Asked]) -> list[Node]:
        """Each has a record of its own, so that a run may go on where other scans share a pass."""
        answers: list[Node] = []
        while len(answers) < len(asked) and self._journal.replaying:
            answers.append(self.scan(*asked[len(answers)]))
        rest = list(asked[len(answers) :])
        if not rest:
            return answers
        real = {id(one.blocks): _real(one.blocks) for one in rest}  # the same ones stay the same
        passes = [one._replace(blocks=real[id(one.blocks)]) for one in rest]
        unseen, self._audited = not self._audited, True
        if unseen:
            passes[0] = passes[0]._replace(scan=Audited(passes[0].scan))
        nodes = self._inner.scan_together(passes)
        if unseen:
            fingerprint, nodes[0] = nodes[0]
            self._record_rows(fingerprint, rest[0].grid)
        for (scan, _, grid), node in zip(rest, nodes, strict=True):
            answers.append(self._written(scan, _question(scan, grid), node))
        return answers

    def _record_rows(self, fingerprint: bytes, grid: Grid) -> None:
        self._journal.append(to_bytes({"rows": fingerprint.hex(), "n_rows": grid.n_rows}))

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
            self._record_rows(fingerprint, grid)
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


def _question(scan: Scan, grid: Grid) -> str:
    return digest(scan.name, scan.question, grid.n_rows, grid.leaf_rows)


@contextlib.contextmanager
def checkpoint(folder: Any, every: float = 5.0) -> Iterator[Journal]:
    """Record the fits inside the `with` block, and continue those that a folder holds already.

    A run that was killed is continued by running the same code again: what its scans found is
    taken from the folder without touching the rows, and the fit goes on from there.  Its labels
    are those of an unbroken run.  The folder is made if need be, readable by its owner alone; it
    holds a few kilobytes a scan and the sample of rows that a fit begins from.

    Parameters
    ----------
    folder : path
        Where the record is kept; one run a folder.
    every : float, default=5.0
        Seconds after which a record is forced to the disk.  It survives the end of the process at
        once, and the end of the machine after this time.

    Yields
    ------
    Journal
        Its length is the number of records.

    Examples
    --------
    >>> import tempfile
    >>> import dmkc
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(2000, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder, dmkc.checkpoint(folder):
    ...     model = dmkc.MultipleKernelClustering(random_state=0).fit(X)
    """
    if not isinstance(every, int | float) or isinstance(every, bool) or not every >= 0:
        raise UserError(f"every must be a number of seconds, not {every!r}.")
    place = Path(folder).expanduser()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    journal = Journal(place, float(every))
    if journal.replaying:
        log.info("Going on with the run in %s, which holds %d records.", place, len(journal))
    token = recorder.set(partial(_recorded, journal))
    try:
        yield journal
    finally:
        recorder.reset(token)
        journal.close()


def is_recording() -> bool:
    """Whether a checkpoint is active."""
    return recorder.get() is not None


def _recorded(journal: Journal, engine: Engine, owner: Any) -> Engine:
    """The engine of a fit as one that records."""
    _check_owner(journal, owner)
    return RecordingEngine(engine, journal)


def _check_owner(journal: Journal, owner: Any) -> None:
    """Refuse another estimator or other parameters than those of the recorded fit."""
    seed = getattr(owner, "random_state", None)
    if not isinstance(seed, Integral):
        raise CheckpointError(
            "A fit inside dmkc.checkpoint needs an integer as random_state, so that it can be "
            f"done again, not {seed!r}."
        )
    given = {
        name: _shown(value)
        for name, value in owner.get_params(deep=False).items()
        if name not in FREE
    }
    mine = {"fit": type(owner).__name__, "parameters": given}
    if not journal.replaying:
        journal.append(to_bytes(mine))
        return
    theirs = journal.read()
    if theirs == mine:
        return
    there = theirs.get("parameters", {})
    other = [name for name in {**given, **there} if given.get(name) != there.get(name)]
    what = f"{', '.join(sorted(other))} differ" if other else "it is of another estimator"
    raise CheckpointError(
        f"The run in {journal.folder} is another one ({what}); choose another folder, or give it "
        "the same parameters."
    )


def _shown(value: Any) -> str:
    """A parameter as text: itself where it is short, else its digest."""
    plain = value is None or isinstance(value, bool | int | float | str)
    return repr(value) if plain else digest(value)
