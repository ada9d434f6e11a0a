"""The master problem over the cuts found so far: multiple kernel clustering, eq. 2.14."""

from __future__ import annotations

from .adaptive import barely_separated
from .clarabel_dual import solve_dual
from .norms import kernel_weights, regulariser
from .problem import Cuts, MasterProblem, MasterSolution, MasterSolverError, check

__all__ = [
    "Cuts",
    "MasterProblem",
    "MasterSolution",
    "MasterSolverError",
    "barely_separated",
    "kernel_weights",
    "regulariser",
    "solve",
]


def solve(problem: MasterProblem, solver: str = "clarabel") -> MasterSolution:
    """Solve a master problem: "clarabel" is the direct dual, "cvxpy" the paper's SOCP."""
    if solver not in ("clarabel", "cvxpy"):
        raise ValueError(f'The solver must be "clarabel" or "cvxpy", but it is "{solver}".')
    check(problem)
    if solver == "clarabel":
        return solve_dual(problem)
    # cvxpy takes a second to import and is needed for this solver only.
    from .cvxpy_socp import solve_socp

    return solve_socp(problem)
