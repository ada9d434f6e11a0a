"""What people call the rows of an input: by its index column, or by their numbers in the file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from dmkc.cli.recipes import Table
from dmkc.cli.speaking import meant
from dmkc.errors import UserError
from dmkc.showing import printable


class RowNames:
    """Names of the rows that are clustered, and back."""

    def __init__(self, table: Table) -> None:
        self._source, self._n_rows = table.source, table.n_rows

    @cached_property
    def _index(self) -> pd.Index | None:
        """One name a row; None where rows are named by their numbers and none was dropped."""
        source = self._source
        if source is None:
            return None
        if source.index is not None:
            names = source.column(source.index).convert_dtypes().astype(str)
            found = pd.Index(names.to_numpy())
        elif sum(source.kept_lengths) == source.n_rows:
            return None
        else:
            found = pd.Index(np.flatnonzero(source.kept()).astype(str))
        if not found.is_unique:
            twice = found[found.duplicated()][0]
            raise UserError(
                f"Rows are asked about by name, and the column {source.index!r} has {twice!r} more "
                "than once: choose another with --index-column."
            )
        return found

    def of(self, rows: Sequence[int]) -> list[str]:
        """Names of rows by their numbers among those that are clustered."""
        index = self._index
        return [str(row if index is None else index[row]) for row in rows]

    def row(self, name: str, where: object) -> int:
        """The number of a row that a file names."""
        index = self._index
        if index is not None and name in index:
            return int(index.get_loc(name))
        n_rows = self._n_rows if self._source is None else self._source.n_rows
        if self._source is not None and self._source.index is not None:
            known = f"of the column {printable(self._source.index)}"
            hint = meant(name, [] if index is None else index[:1000])
            raise UserError(f"{where} names the row {name!r}, which is none {known}.{hint}")
        if not name.isdecimal() or (n_rows is not None and int(name) >= n_rows):
            raise UserError(
                f"{where} names the row {name!r}; rows are numbered from 0 to {(n_rows or 0) - 1}."
            )
        if index is not None:
            raise UserError(f"{where} names the row {name}, which was dropped for missing values.")
        return int(name)
