"""Several clusterers fitted to the same rows at once: each as it would be alone, in fewer passes.

Fits that run together share the survey, the stored values that they make alike, and every pass over
the same blocks (`dmkc.scan.together`).  What looks at rows in its own way is fitted by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial

from sklearn.base import clone

from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.spread import Layout
from dmkc.data import Rows, as_rows
from dmkc.errors import UserError
from dmkc.registry import foreign_modules
from dmkc.scan.engine import Engine, open_engine
from dmkc.scan.together import SharedEngine, Together
from dmkc.typing import PerRow, TableLike

OWN_ROWS = ("train_rows", "must_link", "cannot_link")
"""Parameters with which a fit looks at other rows than all of them, or at rows with numbers."""


def fit_together(members: Sequence[RowClusterer], X: TableLike, sample_weight: PerRow) -> int:
    """Fit clusterers to the same rows, and return how many passes over all rows that took."""
    rows, scans = as_rows(X), 0
    names = {
        id(member): f"Member {k + 1} of {len(members)}, {type(member).__name__}"
        for k, member in enumerate(members)
    }

    def fit(member: RowClusterer, rows: TableLike) -> None:
        with _said_of(names[id(member)]):
            member.fit(rows, None, sample_weight)

    sharing = [member for member in members if _shares(member)]
    for client in {id(member.client): member.client for member in sharing}.values():
        some = [member for member in sharing if member.client is client]
        engines = []
        for member in some:
            with _said_of(names[id(member)]):
                engines.append(open_engine(client, member))
        for batch, together in _batches(some, rows, engines[0]):
            together.run([partial(fit, member, rows) for member in batch])
            scans += together.n_scans
    for member in members:
        if not _shares(member):
            fit(member, X)
            scans += member.n_scans_
    return scans


def _shares(member: RowClusterer) -> bool:
    """Whether a fit may run beside others: one of this package, of all rows as they are."""
    own = any(getattr(member, name, None) is not None for name in OWN_ROWS)
    return not own and not foreign_modules([type(member)])


def _batches(
    members: list[RowClusterer], rows: Rows, engine: Engine
) -> Iterator[tuple[list[RowClusterer], Together]]:
    """As many members at once as can hold, with a share of the memory, what they would alone."""

    def layouts(count: int) -> list[Layout]:
        view = SharedEngine(Together(engine, count, rows.n_rows))
        found = (_layout(member, rows, view) for member in members)
        return [layout for layout in found if layout is not None]

    count, alone = len(members), [layout.mode for layout in layouts(1)]
    while count > 1 and [layout.mode for layout in layouts(count)] != alone:
        count = (count + 1) // 2
    block_rows = min((layout.grid.block_rows for layout in layouts(count)), default=1)
    for first in range(0, len(members), count):
        batch = members[first : first + count]
        yield batch, Together(engine, len(batch), block_rows)


def _layout(member: RowClusterer, rows: Rows, engine: Engine) -> Layout | None:
    """How a fit would hold the rows; None where it is going to say what is wrong."""
    copy = clone(member).set_params(random_state=0)  # a generator would give its next seed away
    try:
        return copy._layout(rows, engine)
    except UserError:
        return None


@contextlib.contextmanager
def _said_of(name: str) -> Iterator[None]:
    """Errors say whose they are."""
    try:
        yield
    except UserError as problem:
        raise type(problem)(f"{name}: {problem}") from problem
    except Exception as failure:
        failure.add_note(f"{name}, failed.")
        raise
