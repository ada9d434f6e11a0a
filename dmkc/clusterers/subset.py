"""Training on a subset of the rows, and going back to all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.parameters.shared import TRAIN_ROWS
from dmkc.clusterers.prepare import FeatureSettings, sample_size
from dmkc.clusterers.rowset import SpreadRows
from dmkc.clusterers.spread import block_grid, carried, choose_mode, row_blocks, spread
from dmkc.data import RowRecord, Rows, as_rows, check_weights, with_weights
from dmkc.data.rows import scan_width
from dmkc.kernels import FeatureMap
from dmkc.scan.engine import Engine
from dmkc.scan.survey import TakeScan, sample_positions
from dmkc.typing import PerRow


@dataclass(frozen=True)
class Subset:
    """Some of the rows, in memory."""

    rows: Rows
    weights: np.ndarray | None
    positions: np.ndarray
    """Their global row numbers."""
    context: Any
    """More rows (with weights, where rows have any), for scaling and starts; None when the subset
    is large."""

    def restricted(self, init: Any) -> Any:
        """Starts with given labelings cut down to these rows."""
        if isinstance(init, str):
            return init
        items = list(init) if isinstance(init, (list, tuple)) else [init]
        if all(np.isscalar(i) and not isinstance(i, str) for i in items):
            items = [np.asarray(items)]
        labels = [not isinstance(i, str) and not hasattr(i, "label_pipeline") for i in items]
        some = self.positions
        return [np.asarray(i)[some] if cut else i for i, cut in zip(items, labels, strict=True)]


def take_subset(
    rows: Rows,
    engine: Engine,
    train_rows: float | None,
    settings: FeatureSettings,
    sample_weight: PerRow,
) -> Subset:
    """A uniform subset by global row number, the same whatever the chunks are.

    The same pass brings the sample on which starts are found, unless the subset is larger: k-means
    of a few hundred rows often ends in other clusters than k-means of all rows.
    """
    n = rows.n_rows
    positions = sample_positions(n, subset_size(train_rows, n), settings.seed + 1)
    if rows.constrained is not None:  # what is known of single rows must not be lost
        positions = np.union1d(positions, rows.constrained)
    sample = sample_positions(n, sample_size(settings, rows.n_columns), settings.seed)
    wanted = np.union1d(positions, sample) if len(sample) > len(positions) else positions
    grid = engine.grid(n, scan_width(rows))
    blocks = list(rows.blocks(grid.block_rows))
    if sample_weight is not None:
        blocks = with_weights(blocks, check_weights(sample_weight, n))
    values, weights = engine.scan(TakeScan(wanted), blocks, grid)
    at = np.searchsorted(wanted, positions)
    context = None
    if wanted is not positions:
        context = values if sample_weight is None else RowRecord(values, weights)
    chosen = None if sample_weight is None else weights[at]
    taken = replace(as_rows(values[at]), column_names=rows.column_names, views=rows.views)
    if rows.constrained is not None:
        taken = replace(taken, constrained=np.searchsorted(positions, rows.constrained))
    return Subset(taken, chosen, positions, context)


def subset_size(train_rows: float | None, n_rows: int) -> int:
    """Rows to train on, from a count or a share."""
    wanted = TRAIN_ROWS.check(train_rows)
    return min(wanted, n_rows) if wanted >= 1 else max(1, round(wanted * n_rows))


def spread_all(
    rows: Rows,
    engine: Engine,
    settings: FeatureSettings,
    features: FeatureMap,
    sample_weight: PerRow,
) -> tuple[SpreadRows, str]:
    """All rows under a feature map that was learned on a subset, and how they are held."""
    maker = features.plan
    compared = max(kernel.compared_with(settings.rank) for kernel in maker.kernels)
    mode = choose_mode(settings, rows, maker.kernels, maker.width, compared, maker.dtype, engine)
    grid = block_grid(rows, engine, maker.width, mode, maker.leaf_rows)
    blocks = row_blocks(rows, engine, grid, mode, sample_weight, settings.mode == "auto")
    extra = carried(sample_weight, rows)
    return spread(engine, blocks, grid, maker, mode, settings.store_path, extra), mode
