"""Training on a subset of the rows, and going back to all of them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from dmkc.clusterers.prepare import FeatureSettings
from dmkc.clusterers.rowset import SpreadRows
from dmkc.clusterers.spread import choose_mode, row_blocks, spread
from dmkc.data import Rows, as_rows, check_weights, with_weights
from dmkc.data.rows import scan_width
from dmkc.kernels import FeatureMap
from dmkc.scan.engine import Engine
from dmkc.scan.grid import Grid
from dmkc.scan.survey import TakeScan, sample_positions


@dataclass(frozen=True)
class Subset:
    """Some of the rows, in memory."""

    rows: Rows
    weights: np.ndarray | None
    positions: np.ndarray
    """Their global row numbers."""

    def restricted(self, init: Any) -> Any:
        """Starts with given labelings cut down to these rows."""
        if isinstance(init, str):
            return init
        items = list(init) if isinstance(init, (list, tuple)) else [init]
        if all(np.isscalar(i) and not isinstance(i, str) for i in items):
            items = [np.asarray(items)]
        return [i if isinstance(i, str) else np.asarray(i)[self.positions] for i in items]


def take_subset(
    rows: Rows, engine: Engine, train_rows: Any, seed: int, sample_weight: Any
) -> Subset:
    """A uniform subset by global row number, the same whatever the chunks are."""
    size = subset_size(train_rows, rows.n_rows)
    positions = sample_positions(rows.n_rows, size, seed + 1)
    grid = Grid.plan(rows.n_rows, scan_width(rows), engine.block_bytes, engine.threads)
    blocks = list(rows.blocks(grid.block_rows))
    if sample_weight is not None:
        blocks = with_weights(blocks, check_weights(sample_weight, rows.n_rows))
    values, weights = engine.scan(TakeScan(positions), blocks, grid)
    return Subset(as_rows(values), None if sample_weight is None else weights, positions)


def subset_size(train_rows: Any, n_rows: int) -> int:
    """Rows to train on, from a count or a share."""
    fine = isinstance(train_rows, Real) and not isinstance(train_rows, bool)
    if fine and isinstance(train_rows, Integral) and int(train_rows) >= 1:
        return min(int(train_rows), n_rows)
    if fine and 0 < train_rows < 1:
        return max(1, round(float(train_rows) * n_rows))
    raise ValueError(
        f"train_rows must be a number of rows or a share between 0 and 1, not {train_rows!r}."
    )


def spread_all(
    rows: Rows, engine: Engine, settings: FeatureSettings, features: FeatureMap, sample_weight: Any
) -> tuple[SpreadRows, str]:
    """All rows under a feature map that was learned on a subset, and how they are held."""
    maker = features.columns
    n, d = rows.n_rows, rows.n_columns
    width = max(maker.width, scan_width(rows))
    grid = Grid.plan(n, width, engine.block_bytes, engine.threads, maker.leaf_rows)
    mode = choose_mode(settings, n, d, maker.width, np.dtype(maker.dtype).itemsize, engine)
    blocks = row_blocks(rows, engine, grid, mode, sample_weight)
    return spread(engine, blocks, grid, maker, mode, settings.store_path), mode
