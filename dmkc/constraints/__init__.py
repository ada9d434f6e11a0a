"""Must-links and cannot-links between rows: reading, checking, counting, asking for more."""

from dmkc.constraints.active import next_pairs
from dmkc.constraints.labelings import (
    Closure,
    Violations,
    check_labeling,
    closure,
    random_pairs,
)

__all__ = [
    "Closure",
    "Violations",
    "check_labeling",
    "closure",
    "next_pairs",
    "random_pairs",
]
