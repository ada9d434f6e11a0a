"""Some of the rows of an input as an input of its own: whole runs of rows, spread over all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dmkc.data import Block, Container, Lazy, Read, Rows
from dmkc.data.blocks import Reader, Values
from dmkc.data.rows import Source
from dmkc.scan.grid import MAX_LEAF_ROWS


def run_rows(n_rows: int, threads: int) -> int:
    """Rows in a run: no block of a fit of `n_rows` rows is larger, and each fits into a run."""
    return 1 << (max(MAX_LEAF_ROWS, -(-n_rows // (4 * threads))) - 1).bit_length()


def some_rows(rows: Rows, n_rows: int, threads: int, turn: int) -> Rows:
    """About `n_rows` of the rows; every `turn` gives others where there are enough.

    All rows are returned where there are not more of them.
    """
    length = run_rows(min(n_rows, rows.n_rows), threads)
    there, wanted = rows.n_rows // length, -(-n_rows // length)
    if wanted >= there:
        return rows
    runs = (np.arange(wanted) * there // wanted + turn) % there
    chosen = np.sort(runs)
    n_chosen = length * wanted
    chunks = (length,) * wanted if rows.container.lazy else None
    return replace(
        rows,
        n_rows=n_chosen,
        container=SomeRowsOf(
            rows.container.kind, n_chosen, chunks, whole=rows, chosen=chosen, length=length
        ),
        source=Runs(rows.source, chosen, length),
    )


@dataclass(frozen=True, eq=False)
class Shifted:
    """Reads rows that have other numbers in the input."""

    reader: Reader
    by: int

    def read(self, start: int, stop: int) -> Values:
        return self.reader.read(start + self.by, stop + self.by)


@dataclass(frozen=True, eq=False)
class Runs:
    """Cuts chosen runs of an input into blocks, as if there were nothing between them."""

    source: Source
    chosen: np.ndarray
    """Numbers of the runs, ascending."""
    length: int
    """Rows of a run."""

    def blocks(self, block_rows: int) -> list[Block]:
        if self.length % block_rows:
            raise ValueError(f"Blocks of {block_rows} rows do not fill a run of {self.length}.")
        each = self.length // block_rows
        every = self.source.blocks(block_rows)
        wanted = [every[run * each + i] for run in self.chosen for i in range(each)]
        return [_moved(block, i * block_rows) for i, block in enumerate(wanted)]


def _moved(block: Block, start: int) -> Block:
    stop = start + block.stop - block.start
    if isinstance(block, Lazy):
        return Lazy(block.delayed, start, stop)
    return Read(Shifted(block.reader, block.start - start), start, stop)


@dataclass(frozen=True, eq=False)
class SomeRowsOf(Container):
    """Results are plain arrays; rows are named as in the whole input."""

    whole: Rows = field(kw_only=True)
    chosen: np.ndarray = field(kw_only=True)
    length: int = field(kw_only=True)

    def row_labels(self, positions: np.ndarray) -> list[str]:
        run, within = np.divmod(np.asarray(positions), self.length)
        return self.whole.container.row_labels(self.chosen[run] * self.length + within)
