"""Planes of known classes, in memory: the convex fit of nonparallel planes used supervised.

Fang and Liu (2020), section 4.1, check in this way that the planes of two classes select the same
features.  `NonparallelPlaneClustering` never looks at labels; this does nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmkc.clusterers.fits import run_together
from dmkc.clusterers.planes.solvers import Asker, solve_convex
from dmkc.clusterers.planes.steps import PlaneProblem
from dmkc.clusterers.rowset import SampleRows
from dmkc.data import RowRecord
from dmkc.errors import UserError
from dmkc.scan.engine import one_blas_thread
from dmkc.scan.grid import leaf_rows_for
from dmkc.scan.planes import Planes
from dmkc.scan.requests import GivenLabels
from dmkc.typing import PerRow, TableLike


@dataclass(frozen=True)
class ClassPlanes:
    """One plane per class."""

    classes: np.ndarray
    weights: np.ndarray
    """(classes, columns)"""
    biases: np.ndarray
    objective: float
    gap: float
    """Relative distance of the objective from a certified lower bound."""
    n_scans: int

    def predict(self, X: TableLike) -> np.ndarray:
        """The class of the nearest plane."""
        planes = Planes(self.weights, self.biases)
        return self.classes[planes.nearest(planes.scores(np.asarray(X, dtype=np.float64)))]


def fit_planes(
    X: TableLike,
    y: PerRow,
    c1: float = 0.25,
    c2: float = 0.01,
    ridge: float = 0.01,
    hinge: bool = False,
    together: bool = True,
    solver: str = "irls",
    tol: float = 1e-5,
) -> ClassPlanes:
    """Planes of the classes y of rows X, which should be centred and scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc.reference.planes import fit_planes
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 100)
    >>> X = rng.normal(size=(200, 5))
    >>> X[:, 2] += 6.0 * y
    >>> found = fit_planes((X - X.mean(axis=0)) / np.ptp(X, axis=0), y, c2=0.02)
    >>> np.flatnonzero(found.weights[0]).tolist()
    [2]
    """
    rows = np.asarray(X, dtype=np.float64)
    classes, z = np.unique(np.asarray(y), return_inverse=True)
    if rows.ndim != 2 or len(rows) != len(z):
        raise UserError(f"X must have a row for each of the {len(z)} labels.")
    if len(classes) < 2:
        raise UserError("y must have at least two different classes.")
    d = rows.shape[1]
    problem = PlaneProblem(len(classes), c1, c2, ridge, hinge, together, np.arange(d + 1))
    columns = SampleRows(RowRecord(rows, labels=z[:, None]), leaf_rows_for(d))
    asker = Asker(problem, GivenLabels(0), None, None)
    solving = solve_convex(asker, solver, None, tol, lambda *_: None)
    with one_blas_thread():
        (found,) = run_together([solving], columns)
    w = found.model.spread(d)
    return ClassPlanes(classes, w, found.model.b, found.value, found.gap, columns.n_scans)
