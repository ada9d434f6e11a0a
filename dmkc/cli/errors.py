"""Mistakes of a user, and which exceptions are such."""

from __future__ import annotations

import errno

from dmkc.errors import UserError

__all__ = ["Failure", "UserError", "is_users", "sentence"]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE)


class Failure(Exception):
    """Something outside went wrong; the text is the sentence shown."""


def is_users(problem: BaseException) -> bool:
    """Whether an exception says that the use or the input is wrong, and not that dmkc failed."""
    if isinstance(problem, UserError):
        return True
    if isinstance(problem, OSError):
        named = problem.filename is not None or problem.errno is None
        return named and problem.errno not in FULL and not isinstance(problem, ConnectionError)
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
