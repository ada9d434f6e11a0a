"""Mistakes of a user, and which exceptions are such."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE)


class UserError(Exception):
    """Bad use or bad input; the text is the sentence shown."""


class Failure(Exception):
    """Something outside went wrong; the text is the sentence shown."""


def is_users(problem: BaseException) -> bool:
    """Whether an exception says that the use or the input is wrong, and not that dmkc failed."""
    if isinstance(problem, UserError):
        return True
    if isinstance(problem, OSError):
        named = problem.filename is not None or problem.errno is None
        return named and problem.errno not in FULL and not isinstance(problem, ConnectionError)
    if isinstance(problem, ValueError | TypeError):
        # The package's own checks raise these with a sentence; from deeper they are failures.
        frames = traceback.extract_tb(problem.__traceback__)
        return bool(frames) and PACKAGE in Path(frames[-1].filename).parents
    return False


def sentence(problem: BaseException) -> str:
    """One line about an exception."""
    if isinstance(problem, OSError) and problem.filename is not None:
        text = f"{problem.filename}: {(problem.strerror or 'cannot be used').lower()}."
    elif isinstance(problem, MemoryError):
        text = f"The memory does not suffice ({problem or 'no details'})."
    else:
        text = str(problem) or type(problem).__name__
    text = " ".join(text.split())
    return text if text.endswith((".", "?", "!")) else f"{text}."
