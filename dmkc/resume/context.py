"""`dmkc.checkpoint(folder)`: fits inside it can be killed at any instant and continued."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

from dmkc.errors import UserError
from dmkc.resume.engine import RecordingEngine
from dmkc.resume.journal import CheckpointError, Journal
from dmkc.resume.records import digest, to_bytes
from dmkc.scan.engine import Engine, recorder

log = logging.getLogger("dmkc")

FREE = ("client", "verbose", "feature_mode", "store_path")
"""Parameters that may change between the parts of a run, since no label depends on them."""


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
