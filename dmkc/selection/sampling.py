"""The rows that candidates are fitted to and compared on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dmkc.clusterers.checks import check_enough, check_finite, check_range, check_weighted
from dmkc.clusterers.members import as_given
from dmkc.clusterers.prepare import SAMPLE_BYTES
from dmkc.clusterers.sampled import spread_out
from dmkc.data import Rows, check_weights, with_weights
from dmkc.data.rows import scan_width
from dmkc.scan.engine import Engine
from dmkc.scan.survey import Survey, SurveyScan, sample_positions
from dmkc.typing import PerRow, TableLike


@dataclass(frozen=True)
class Sample:
    """Some rows in memory, each of weight 1."""

    rows: Rows
    """All rows."""
    positions: np.ndarray
    """Numbers of the sampled ones."""
    values: np.ndarray

    def form(self, some: np.ndarray) -> TableLike:
        """Rows of the sample with the views or the column names that all rows have."""
        return as_given(some, dict(self.rows.views), self.rows.column_names)


def take_sample(
    rows: Rows,
    engine: Engine,
    wanted: int,
    fewest: int,
    sample_weight: PerRow,
    asked: np.ndarray,
    seed: int,
) -> Sample:
    """Some rows, those that are `asked` for among them, once it is known that all can be clustered.

    `fewest` is the number of clusters that there must be rows for.
    """
    check_enough(rows.n_rows, fewest)
    grid = engine.grid(rows.n_rows, scan_width(rows))
    blocks = list(rows.blocks(grid.block_rows))
    if sample_weight is not None:
        blocks = with_weights(blocks, check_weights(sample_weight, rows.n_rows))
    size = min(wanted, max(SAMPLE_BYTES // (8 * rows.n_columns), 64), rows.n_rows)
    positions = np.union1d(sample_positions(rows.n_rows, size, seed), asked)
    survey: Survey = engine.scan(SurveyScan(positions), blocks, grid)
    check_finite(survey, rows)
    check_weighted(survey, fewest)
    check_range(survey, rows, fewest)
    found = survey.sample.toarray() if sp.issparse(survey.sample) else survey.sample
    values = np.asarray(found, dtype=np.float64)
    if sample_weight is not None:
        some = np.union1d(spread_out(survey.sample_weights), np.searchsorted(positions, asked))
        positions, values = positions[some], values[some]
    return Sample(rows, positions, values)
