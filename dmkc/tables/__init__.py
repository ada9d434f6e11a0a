"""Tables of mixed columns as tables of numbers, by a recipe that is kept with the model."""

from dmkc.tables.columns import TableColumns
from dmkc.tables.frames import as_frame, is_lazy
from dmkc.tables.kinds import KINDS
from dmkc.tables.recipe import MISSING, Applied, Column, MissingValues, Recipe

__all__ = [
    "KINDS",
    "MISSING",
    "Applied",
    "Column",
    "MissingValues",
    "Recipe",
    "TableColumns",
    "as_frame",
    "is_lazy",
]
