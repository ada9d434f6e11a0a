"""Text of others, such as the name of a file or of a column, in a form that is safe to print."""

from __future__ import annotations

import html
from collections.abc import Iterable

MOST_CHARACTERS = 2000
"""A longer text is cut where it is shown as one line."""


def printable(text: object) -> str:
    """The text in one line, with escapes for whatever a terminal would act upon.

    Bytes of a file name that are no UTF-8 are shown by their numbers.

    Examples
    --------
    >>> from dmkc.showing import printable
    >>> print(printable("a\\x1b[31m\\nb"))
    a\\x1b[31m\\nb
    """
    plain = str(text)
    return plain if plain.isprintable() else "".join(map(_escaped, plain))


def one_line(text: object) -> str:
    """The text as one line of bearable length."""
    plain = printable(text)
    if len(plain) <= MOST_CHARACTERS:
        return plain
    half = MOST_CHARACTERS // 2
    return f"{plain[:half]} ... {plain[-half:]}"


def html_lines(lines: Iterable[object]) -> str:
    """Lines of text for a notebook, the first of them in bold."""
    first, *others = (html.escape(one_line(line)) for line in lines)
    return f"<div>{'<br>'.join([f'<b>{first}</b>', *others])}</div>"


def html_pairs(pairs: Iterable[tuple[object, object]]) -> str:
    """Names and values for a notebook, as a table."""
    cell = '<td style="text-align:left;white-space:pre-wrap">'
    rows = (
        f"<tr>{cell}{html.escape(one_line(name))}</td>{cell}{html.escape(one_line(value))}</td></tr>"
        for name, value in pairs
    )
    return f"<table>{''.join(rows)}</table>"


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # how Python carries a byte that is no UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
