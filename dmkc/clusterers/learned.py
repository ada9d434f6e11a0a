"""What fits end with and what estimators keep of them, the same for every method."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from dmkc.clusterers.race import Named, Stage

MAX_ITER_REACHED = "max_iter was reached"
SETTLED = "labels settled"


@dataclass(frozen=True, kw_only=True)
class FitEnd:
    """How a fit came out; a method adds what it has found."""

    shares: np.ndarray
    """Sizes of the clusters: shares of the rows, or their weights."""
    n_iter: int
    converged: bool
    reason: str
    """Why it ended."""


Kept = TypeVar("Kept", bound=FitEnd)
Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Learned(Generic[Kept, Settings]):
    """The fit that was kept, and how it came about."""

    fit: Kept
    start: str
    """Name of the start that it began from."""
    settings: Settings
    """What was asked for, with everything calibrated that was left open."""
    selection: list[dict[str, Any]] | None = None
    """Scores of all that was chosen from, where something was left open."""
    details: dict[str, Any] = field(default_factory=dict)
    """Further fitted attributes of the estimator, by name."""

    def continued(self, stage: Stage[Kept, Any, Kept]) -> Learned[Kept, Settings]:
        """The same after the fit went on with other rows; it has converged if it had before."""
        (found,) = stage.run([Named(self.start, self.fit)])
        converged = found.value.converged or self.fit.converged
        return replace(self, fit=replace(found.value, converged=converged))
