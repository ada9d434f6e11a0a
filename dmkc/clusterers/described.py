"""What an estimator says of itself: its parameters, and the facts, pictures and metrics of a fit.

The command line, reports and pictures ask for these and never look for attributes themselves.
Plain answers stand here; a family of methods gives its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from dmkc.clusterers.parameters import Parameter, init_from, with_parameters

BY_SCORE = (
    "Left to right is the score whose sign decides; bottom to top is the largest variation that "
    "the score does not explain."
)
BY_COMPONENTS = "The two leading principal components of the learned features."
CONVEX_COURSE = (
    "Each dotted line is a relabeling, after which a new convex problem begins; it is solved when "
    "objective and bound meet."
)


@dataclass(frozen=True)
class Picture:
    """A picture of a fit that makes sense for its method."""

    name: str
    """A function of `dmkc.plot`, unless `draw` is given."""
    caption: str
    beside: bool = False
    """Whether it is small and stands beside others."""
    draw: Callable[[Any, Any, Any], Any] | None = None
    """Matplotlib axes from the fitted estimator, sampled rows and the labels of all rows."""


@dataclass(frozen=True)
class Choice:
    """What a fit has chosen without labels."""

    records: list[dict[str, Any]]
    """One per number of clusters, or per candidate, that was tried."""
    confidence: float | None
    """None where only the number of clusters was open."""
    alternatives: list[Any]
    """Models of the other clusterings that are offered, the chosen one first."""
    score: str = "Mean of the criteria of every number of clusters, each rescaled to 0..1."
    """What a score of a number of clusters is, for those who look at it."""


class Described:
    """An estimator that describes itself.

    A fitted one has `labels_`, `objective_`, `start_`, `converged_`, `n_iter_`, `n_scans_` and
    `history_`, whatever the method.
    """

    declared: ClassVar[tuple[Parameter, ...]] = ()
    """The parameters, in the order of `__init__`, which is made from them where there is none; the
    docstring gets its section from them."""
    summary: ClassVar[str] = ""
    """The method in half a line, for lists of methods."""
    selectable: ClassVar[tuple[str, ...]] = ()
    """Parameters that `dmkc.select` chooses where they are "auto"."""
    _writes_init: ClassVar[bool] = False
    """Whether the class, or one that it derives from, has an `__init__` that somebody wrote."""
    _has_scores: ClassVar[bool] = False
    """Whether the model decides by scores, so that there is a decision function."""
    _has_margin: ClassVar[bool] = False
    """Whether scores have a margin of 1."""
    _has_kernels: ClassVar[bool] = False
    """Whether there are `kernels_` with `kernel_weights_`, and landmarks."""
    _rounds: ClassVar[str] = "iterations"
    """What `n_iter_` counts."""
    _minimised: ClassVar[str] = "objective"
    """What the records of `history_` call their objective, in words."""
    n_clusters_: Any
    objective_: float
    start_: str
    n_iter_: int
    n_scans_: int
    history_: list[dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._writes_init = cls._writes_init or "__init__" in vars(cls)
        if "declared" in vars(cls):
            if cls.__doc__:
                cls.__doc__ = with_parameters(cls.__doc__, cls.declared)
            if not cls._writes_init:
                cls.__init__ = init_from(cls.declared)  # type: ignore[method-assign]

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """The declared parameters by name."""
        return {parameter.name: parameter for parameter in cls.declared}

    def _checked(self) -> dict[str, Any]:
        """Every parameter as plain Python; one sentence about the first that is wrong."""
        return {p.name: p.check(getattr(self, p.name)) for p in self.declared}

    def _facts(self) -> list[tuple[str, Any]]:
        """Names and values that only this method has, for the table of what was run."""
        return []

    def _pictures(self) -> list[Picture]:
        """The pictures of a report, in order."""
        two = self._has_scores and self.n_clusters_ == 2
        found = [Picture("embedding", BY_SCORE if two else BY_COMPONENTS)]
        if self._has_margin:
            inside = "of a score between -1 and 1" if two else "less than 1 ahead"
            words = f"Those in the shaded margin, {inside}, are the uncertain ones."
            found.append(Picture("margins", words))
        bounded = any("bound" in record for record in self.history_)
        course = CONVEX_COURSE if bounded else f"The {self._minimised} after every step."
        found.append(Picture("convergence", course))
        if self._has_kernels:
            found.append(self._weights_picture())
        return [*found, Picture("sizes", "Counted over all rows.", beside=True)]

    def _weights_picture(self) -> Picture:
        """What the model weighs."""
        words = "How much each kernel counts in the learned combination."
        return Picture("kernel_weights", words, beside=True)

    def _metrics(self) -> dict[str, Any]:
        """What metrics.json and `dmkc info` say of the fit."""
        return {
            "objective": self.objective_,
            "start": self.start_,
            "relabelings": self.n_iter_,
            "scans": self.n_scans_,
        }

    def _choice(self) -> Choice | None:
        """What was chosen, where something had been left open."""
        return None

    def _fitted(self, name: str) -> Any:
        """A fitted value, or None where a model file does not hold it."""
        return vars(self).get(name)


def landmarks_fact(clusterer: Any) -> tuple[str, str]:
    """How many landmarks there are and what they are, for facts of a method with kernels."""
    count = clusterer.model_.label_pipeline().plan.n_landmarks
    how = clusterer.landmarks if isinstance(clusterer.landmarks, str) else "given"
    return "landmarks", f"{count}, {how}"
