"""Mistakes of a user, told apart from failures of dmkc or of a library below it."""

from __future__ import annotations

import re

MARKED = re.compile(r"`([A-Za-z_]\w*)(?:=([^`]*))?`")
"""A parameter in a sentence, with a value or without: `n_clusters`, `init="links"`."""


def unmarked(text: str) -> str:
    """A sentence as Python says it."""
    return MARKED.sub(lambda found: found[0][1:-1], text)


class UserError(ValueError):
    """The use or the input is wrong; the text is one sentence that says what and what to do.

    Only dmkc's own checks raise it: any other ValueError is a failure.  Parameters stand between
    backticks, which nobody sees: Python leaves them out, and the command line names its options.
    """

    @property
    def marked(self) -> str:
        """The sentence with its marks."""
        return super().__str__()

    def __str__(self) -> str:
        return unmarked(self.marked)


class UserTypeError(UserError, TypeError):
    """The same where something of another type was expected."""


class Marked(str):
    """A sentence of a warning, in which parameters are marked as in a `UserError`."""

    marked: str

    def __new__(cls, text: str) -> Marked:
        made = super().__new__(cls, unmarked(text))
        made.marked = text
        return made
