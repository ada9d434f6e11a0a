"""What is done with a column, decided by what it holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dmkc.tables.summary import Summary

KINDS = ("number", "boolean", "category", "date", "duration")
"""What a column can be used as."""
MOST_CATEGORIES = 50
"""Categories with a column of their own, the most frequent ones; the others share none."""
FEW_ROWS = 10
"""Among fewer rows, values that all differ say nothing."""
NAMES_OF_IDS = re.compile(
    r"(?i:(?:^|[\W_])(?:ids?|key|uuid|guid|index|idx|rowid|nr|no|unnamed: ?\d+))$|[a-z]I[dD]$"
)
"""How columns are called that name rows: id, customer_id, customerId, Unnamed: 0."""
NATURAL = {
    "number": "number",
    "boolean": "boolean",
    "text": "category",
    "date": "date",
    "duration": "duration",
    "empty": "number",
    "other": "category",
}


@dataclass(frozen=True)
class Decision:
    """What a column is, and why it is left out where it is."""

    kind: str
    left_out: str = ""


def decide(name: Any, found: Summary) -> Decision:
    """The kind of a column; columns that tell nothing of the rows, or only name them, are out."""
    kind = NATURAL[found.sort]
    if found.sort == "other":
        return Decision(kind, "neither numbers, texts nor dates")
    if found.sort == "empty":
        return Decision(kind, "no values")
    if found.distinct == 1:
        return Decision(kind, "constant")
    if names_rows(name, found):
        return Decision(kind, "id-like")
    return Decision(kind)


def names_rows(name: Any, found: Summary) -> bool:
    """Whether a column seems to name rows rather than to describe them.

    Texts do where most differ; whole numbers where all differ and count up without a gap, or the
    column is called so.
    """
    if found.present < FEW_ROWS:
        return False
    if found.sort == "text":
        many = found.distinct > MOST_CATEGORIES and found.distinct > found.present / 2
        return found.all_differ or many
    if found.sort == "number" and found.whole and found.all_differ:
        in_a_row = found.high - found.low == found.present - 1
        return in_a_row or NAMES_OF_IDS.search(str(name)) is not None
    return False


def categories_of(found: Summary) -> tuple[str, ...]:
    """The categories that have columns, in the order of the alphabet."""
    ranked = sorted(found.counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(sorted(text for text, _ in ranked[:MOST_CATEGORIES]))
