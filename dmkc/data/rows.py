"""The checked input: its shape and type, and its row blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dmkc.data.blocks import Block
from dmkc.data.container import Container
from dmkc.data.record import with_constrained


class Source(Protocol):
    """Cuts one kind of input into blocks."""

    def blocks(self, block_rows: int) -> list[Block]:
        """Return blocks of exactly block_rows rows in order; the last may be shorter."""


SPARSE_WIDTH = 2048


@dataclass(frozen=True, eq=False)
class Rows:
    """A two-dimensional numeric input that has passed every check that needs no scan."""

    n_rows: int  # number of rows
    n_columns: int  # number of columns
    dtype: np.dtype  # dtype of the loaded blocks
    sparse: bool  # loaded blocks are csr_array
    density: float  # stored fraction if sparse (estimated if the input is lazy), else 1.0
    column_names: tuple[str, ...] | None  # only when every column name is a string
    in_memory: bool  # the values are in this process already
    container: Container  # puts results into the input's own form
    source: Source = field(repr=False)  # cuts the input into blocks
    constrained: np.ndarray | None = field(
        default=None, repr=False
    )  # rows that blocks number, ascending
    sampled: np.ndarray | None = field(default=None, repr=False)  # rows to begin from, if not any
    views: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # first and last + 1 columns

    def blocks(self, block_rows: int) -> list[Block]:
        """Return the rows as blocks of exactly block_rows rows, the last one shorter if need be."""
        blocks = self.source.blocks(block_rows)
        return blocks if self.constrained is None else with_constrained(blocks, self.constrained)


def scan_width(rows: Rows) -> int:
    """Numbers in a row as far as planning goes: sparse rows hold few, however wide they are.

    It must not depend on the density, which is only estimated where rows are lazy.
    """
    return min(rows.n_columns, SPARSE_WIDTH) if rows.sparse else rows.n_columns
