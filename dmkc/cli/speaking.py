"""Sentences of the library in the words of the command line, and what a misspelt word may mean.

The library marks parameters in its sentences (`dmkc.errors`); here they become options.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from dmkc.errors import MARKED

OTHERS = {
    "X": "the input",
    "n_samples": "the number of rows",
    "sample_weight": "--row-weights",
    "answers": "--answers",
    "variable": "--variable",
    "client": "--scheduler",
}
"""What stands for arguments that are no parameters of a method."""
RANGE = re.compile(r"\((\d+), (\d+)\)")
WORDS = re.compile(r"(?<!['\"\w])(?:True|False|None)(?!['\"\w])")


def spoken(marked: str) -> str:
    """A marked sentence with options instead of parameters, and values as a shell takes them."""
    if MARKED.search(marked) is None:
        return marked
    text = MARKED.sub(_option, marked.replace("Input `X`", "`X`"))
    text = WORDS.sub(lambda found: found[0].lower(), RANGE.sub(r"\1-\2", text))
    return text[:1].upper() + text[1:]


def said(problem: BaseException | Warning) -> str:
    """What an exception or a warning says, in the words of the command line."""
    first: Any = problem if hasattr(problem, "marked") else (*problem.args, "")[0]
    return spoken(getattr(first, "marked", str(problem)))


def _option(found: re.Match[str]) -> str:
    from dmkc.cli.options import NOT_OPTIONS, flags, methods_with

    name, value = found[1], found[2]
    known = name not in OTHERS and (name in NOT_OPTIONS or bool(methods_with(name)))
    option = flags(name)[0] if known else OTHERS.get(name, name)
    if value is None:
        return option
    shown = value.strip("'\"")
    if not option.startswith("-"):
        return f"{name}={value}" if option == name else f"{option} ({shown})"
    return f"{option} {shown}".rstrip()


def meant(word: Any, known: Iterable[Any], form: str = "{!r}") -> str:
    """The known word that a misspelt one is close to, as a question; nothing where none is."""
    words = {str(each).lower(): each for each in known}
    close = difflib.get_close_matches(str(word).lower(), list(words), n=1)
    return f" Did you mean {form.format(words[close[0]])}?" if close else ""
