"""Some of the rows of an input as an input of its own.

They are whole runs of rows, spread over the input, and after them the sample that a fit of all rows
would begin from: a fit of some rows then begins like that of all, and goes on much like it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from dmkc.data import Block, Container, Lazy, Read, Rows
from dmkc.data.blocks import HeldArray, HeldSparse, Reader, Values, bounds, csr
from dmkc.data.rows import Source, scan_width
from dmkc.scan.engine import Engine
from dmkc.scan.grid import MAX_LEAF_ROWS
from dmkc.scan.survey import TakeScan, sample_positions


def run_rows(n_rows: int, threads: int) -> int:
    """Rows in a run: no block of a fit of `n_rows` rows is larger, and each fits into a run."""
    return 1 << (max(MAX_LEAF_ROWS, -(-n_rows // (4 * threads))) - 1).bit_length()


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows in memory."""

    positions: np.ndarray
    """Their numbers in the input, ascending."""
    values: Values

    def __len__(self) -> int:
        return len(self.positions)

    def blocks(self, first: int, block_rows: int) -> list[Block]:
        """These rows in blocks, numbered from `first` on."""
        values = self.values
        reader: Reader = (
            HeldSparse(csr(values, values.dtype), first)
            if sp.issparse(values)
            else HeldArray(values, first, values.dtype)
        )
        return [Read(reader, first + a, first + b) for a, b in bounds(len(self), block_rows)]


def take_sample(rows: Rows, engine: Engine, size: int, seed: int) -> Sample:
    """The sample that a fit of all rows begins from, by one pass over them."""
    positions = sample_positions(rows.n_rows, size, seed)
    grid = engine.grid(rows.n_rows, scan_width(rows))
    values, _ = engine.scan(TakeScan(positions), list(rows.blocks(grid.block_rows)), grid)
    return Sample(positions, values)


def some_rows(
    rows: Rows, n_rows: int, threads: int, turn: int, sample: Sample | None = None
) -> Rows:
    """About `n_rows` of the rows, and a sample; every `turn` gives others if there are enough.

    All rows are returned where there are not more of them.
    """
    n_sampled = 0 if sample is None else len(sample)
    length = run_rows(min(n_rows, rows.n_rows) + n_sampled, threads)
    there, wanted = rows.n_rows // length, -(-n_rows // length)
    if wanted >= there:
        return rows
    chosen = np.sort((np.arange(wanted) * there // wanted + turn) % there)
    source = Runs(rows.source, chosen, length, sample)
    n_chosen = length * wanted + n_sampled
    chunks = tuple(b.stop - b.start for b in source.blocks(length)) if rows.container.lazy else None
    return replace(
        rows,
        n_rows=n_chosen,
        container=SomeRowsOf(rows.container.kind, n_chosen, chunks, whole=rows, runs=source),
        source=source,
        sampled=None if sample is None else np.arange(length * wanted, n_chosen),
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
    sample: Sample | None
    """What follows the runs."""

    def blocks(self, block_rows: int) -> list[Block]:
        if self.length % block_rows:
            raise ValueError(f"Blocks of {block_rows} rows do not fill a run of {self.length}.")
        each = self.length // block_rows
        every = self.source.blocks(block_rows)
        wanted = [every[run * each + i] for run in self.chosen for i in range(each)]
        blocks = [_moved(block, i * block_rows) for i, block in enumerate(wanted)]
        more = [] if self.sample is None else self.sample.blocks(self.n_in_runs, block_rows)
        return [*blocks, *more]

    @property
    def n_in_runs(self) -> int:
        return len(self.chosen) * self.length

    def original(self, positions: np.ndarray) -> np.ndarray:
        """Numbers in the input of rows with these numbers."""
        run, within = np.divmod(np.minimum(positions, self.n_in_runs - 1), self.length)
        found = self.chosen[run] * self.length + within
        if self.sample is not None:
            later = positions >= self.n_in_runs
            found[later] = self.sample.positions[positions[later] - self.n_in_runs]
        return found


def _moved(block: Block, start: int) -> Block:
    stop = start + block.stop - block.start
    if isinstance(block, Lazy):
        return Lazy(block.delayed, start, stop)
    return Read(Shifted(block.reader, block.start - start), start, stop)


@dataclass(frozen=True, eq=False)
class SomeRowsOf(Container):
    """Results are plain arrays; rows are named as in the whole input."""

    whole: Rows = field(kw_only=True)
    runs: Runs = field(kw_only=True)

    def row_labels(self, positions: np.ndarray) -> list[str]:
        return self.whole.container.row_labels(self.runs.original(np.asarray(positions)))
