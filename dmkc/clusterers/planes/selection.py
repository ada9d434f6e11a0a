"""Which columns a model of planes has selected, and rows cut down to these."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from dmkc.clusterers import labelling
from dmkc.data import Lazy, Rows
from dmkc.data.blocks import Values
from dmkc.importing import is_of
from dmkc.kernels.tiles import check_finite
from dmkc.typing import PerRow, TableLike


class SelectsColumns(TransformerMixin):
    """What a feature selector of scikit-learn has, for clusterers with `feature_importances_`.

    The importance of a column is its largest absolute weight in any plane, after scaling; columns
    with weight 0 in all planes are not selected.
    """

    feature_importances_: np.ndarray
    selects_columns_: bool

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Which columns (or components, with kernels through landmarks) are selected."""
        check_is_fitted(self)
        mask = self.feature_importances_ > 0
        return np.flatnonzero(mask) if indices else mask

    def transform(self, X: TableLike) -> PerRow:
        """The selected columns of `X`, in the form of `X`.

        With kernels through landmarks selection acts on components, and these are returned.
        """
        X = self._in_numbers(X)  # type: ignore[attr-defined]
        rows: Rows = self._new_rows(X)  # type: ignore[attr-defined]
        chosen, names = self.get_support(indices=True), list(self.get_feature_names_out())
        if not len(chosen):
            warnings.warn("No column is selected: decrease c2.", stacklevel=3)
        if self.selects_columns_:
            if rows.in_memory:
                _check_finite(rows)
            return take_columns(X, rows, chosen, names)
        model = self.model_  # type: ignore[attr-defined]
        pipeline = model.component_pipeline(chosen)
        kind = model.features.plan.dtype
        return labelling.apply(rows, pipeline, kind, len(chosen), "component", columns=names)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`."""
        check_is_fitted(self)
        if self.selects_columns_:
            return _check_feature_names_in(self, input_features)[self.get_support()]
        return np.array([f"component{i}" for i in self.get_support(indices=True)], dtype=object)


def take_columns(X: TableLike, rows: Rows, chosen: np.ndarray, names: list[str]) -> Any:
    """Some columns of an input that `as_rows` has accepted, in the input's own form.

    Frames have names; xarray's columns keep their own coordinates.
    """
    if hasattr(X, "iloc"):
        some = X.iloc[:, chosen.tolist()]
        return some.rename(columns=dict(zip(some.columns, names, strict=True)))
    if sp.issparse(X):
        return X.tocsr()[:, chosen]
    if is_of(X, "zarr", "Array"):
        import dask.array as da

        return da.from_zarr(X)[:, chosen]
    if hasattr(X, "shape") and hasattr(X, "ndim"):
        return X[:, chosen]
    if rows.container.lazy:
        blocks = rows.blocks(block_rows(rows))
        found = labelling.lazily(blocks, _Taker(chosen), rows.dtype, len(chosen))
        return rows.container.wrap(found, "column", names)
    (whole,) = rows.blocks(rows.n_rows)
    assert not isinstance(whole, Lazy)  # lists and views in memory
    return rows.container.wrap(_Taker(chosen)(whole.load()), "column", names)


def _check_finite(rows: Rows) -> None:
    for block in rows.blocks(block_rows(rows)):
        values = block.load() if not isinstance(block, Lazy) else block.delayed.compute()
        with np.errstate(invalid="ignore"):
            nothing = (values * 0.0).sum(axis=1)  # NaN where a value is not finite
        check_finite(np.asarray(nothing, dtype=np.float64), values)


def block_rows(rows: Rows) -> int:
    return max(1, labelling.BLOCK_BYTES // (8 * rows.n_columns))


class _Taker:
    """Some columns of a block, dense."""

    def __init__(self, chosen: np.ndarray) -> None:
        self.chosen = chosen

    def __call__(self, rows: Values) -> np.ndarray:
        some = rows[:, self.chosen]
        return some.toarray() if sp.issparse(some) else some


def synchronisation(weights: np.ndarray, r: int | None = None) -> float:
    """How far planes agree on their r most important features, 1 being complete agreement.

    The mean, over pairs of planes, of Pearson's correlation between the indicator vectors of
    their r largest weights (Fang and Liu 2020, section 4.1); None: of all weights that are not 0.
    """
    size = np.abs(np.asarray(weights, dtype=np.float64))
    chosen = size > 0
    if r is not None:
        order = np.argsort(-size, axis=1, kind="stable")[:, :r]
        top = np.zeros_like(chosen)
        np.put_along_axis(top, order, True, axis=1)
        chosen &= top
    pairs = [_pearson(a, b) for a, b in combinations(chosen, 2)]
    return float(np.mean(pairs)) if pairs else 1.0


def cosines(weights: np.ndarray) -> np.ndarray:
    """Cosines of the angles between the planes' normals; 0 with a plane that has no weights."""
    size = np.linalg.norm(weights, axis=1)
    unit = weights / np.where(size > 0, size, 1.0)[:, None]
    return np.clip(unit @ unit.T, -1.0, 1.0)


def _pearson(a: np.ndarray, b: np.ndarray) -> float:
    if np.array_equal(a, b):
        return 1.0
    if a.all() or b.all() or not (a.any() and b.any()):
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])
