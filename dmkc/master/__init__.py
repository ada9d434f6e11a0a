"""The master problem over the cuts found so far: multiple kernel clustering, eq. 2.14."""

from __future__ import annotations

from dmkc.master.active import more_products, solve_from
from dmkc.master.adaptive import barely_separated
from dmkc.master.dual import solve
from dmkc.master.problem import (
    Cuts,
    MasterProblem,
    MasterSolution,
    MasterSolverError,
    kernel_weights,
    regulariser,
    weights_for,
)

__all__ = [
    "Cuts",
    "MasterProblem",
    "MasterSolution",
    "MasterSolverError",
    "barely_separated",
    "kernel_weights",
    "more_products",
    "regulariser",
    "solve",
    "solve_from",
    "weights_for",
]
