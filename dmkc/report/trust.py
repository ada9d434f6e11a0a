"""Whether the clusters can be trusted: structure against none, other rows, other methods."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from dmkc.clusterers.members import Refits
from dmkc.clusterers.sampled import leading_components
from dmkc.errors import UserError
from dmkc.report.columns import share
from dmkc.report.facts import k_means_labels
from dmkc.report.subject import Subject
from dmkc.selection.families import within_bounds
from dmkc.selection.structure import ADVICE, CLEAR, EVIDENCE, NONE, evidence_of, telling

SURE_ROW = 0.75
"""A row with a smaller chance of its label is called unsure."""
STABLE, SHAKY = 0.9, 0.7
"""Mean chances from which on labels are stable, and below which they are not."""
SAME, ALIKE = 0.9, 0.5
"""Adjusted Rand indices from which on two clusterings are the same, and alike."""
COMPARED = 1000
"""Rows on which other methods are tried."""
LOOKED_AT = 300
"""Rows in which structure is looked for, where the model has not done so."""
MOST_CELLS = 4_000_000
"""Of these rows."""
WIDE, COMPONENTS = 200, 50
"""Of more columns, structure is looked for in so many components."""
YES, PARTLY, NO = "Yes", "Partly", "No"
DIVISION = "Only as a division"
SUMMARY = {
    YES: "The clusters are there, and fits of other rows find them again.",
    PARTLY: "Something is there; read what speaks against it before you rely on it.",
    DIVISION: "Fits of other rows part the rows in the same way, but nothing shows that these are "
    "separate groups.",
    NO: "Do not rely on these clusters as they are.",
}
NESTED = (
    "Some of these clusters lie inside each other and differ in spread, though, which the "
    "comparison with rows without clusters cannot see: it looks for valleys between clusters."
)
APART, WIDER = 1.5, 1.3
"""Clusters with means nearer than so many standard deviations, and spreads that differ so many
times, lie inside each other."""
ONE = {
    YES: "One cluster is what these rows are.",
    PARTLY: "One cluster was asked for, and there may be more.",
}


@dataclass(frozen=True, eq=False)
class Trust:
    """What is known of how far a clustering can be relied on."""

    evidence: float | None
    """Standard deviations by which rows are cut better than rows without clusters."""
    chances: np.ndarray | None
    """For every sampled row and cluster, the chance that a fit of other rows puts it there."""
    own: np.ndarray | None
    """The chance of the label that the row has; of noise NaN."""
    others: dict[str, float]
    """Adjusted Rand indices with the labels of other methods."""
    answer: str
    """Yes, partly, only as a division, or no."""
    summary: str
    """The answer in a sentence."""
    sentences: list[str]
    """What it rests on."""

    @property
    def unsure(self) -> np.ndarray:
        """Numbers of the sampled rows that are near a boundary, the least sure first."""
        if self.own is None:
            return np.empty(0, dtype=int)
        order = np.argsort(self.own, kind="stable")
        return order[self.own[order] < SURE_ROW]


def trust_of(subject: Subject) -> Trust:
    """Ask the model what it knows, and the sampled rows what it does not."""
    model = subject.estimator
    evidence, clear = model._fitted("evidence_"), model._fitted("verdict_")
    if evidence is None:
        evidence = _evidence(subject)
    chances = _chances(subject)
    own = None
    if chances is not None:
        place = np.maximum(subject.sampled, 0)
        own = np.where(subject.sampled >= 0, chances[np.arange(len(place)), place], np.nan)
    others = _others(subject) if model._fitted("candidates_") is None else {}
    mean = None if own is None or np.isnan(own).all() else float(np.nanmean(own))
    inside = (
        evidence is not None and evidence < EVIDENCE and nested(subject.values, subject.sampled)
    )
    answer = _answer(subject.n_clusters, None if inside else evidence, mean, clear)
    said = [
        *_of_structure(subject, evidence),
        *([NESTED] if inside else []),
        *_of_stability(own, mean),
        *_of_agreement(model, others),
    ]
    summary = (ONE if subject.n_clusters == 1 else SUMMARY)[answer]
    return Trust(evidence, chances, own, others, answer, summary, said)


def _answer(n_clusters: int, evidence: float | None, mean: float | None, clear: Any) -> str:
    weak = evidence is not None and evidence < EVIDENCE
    if n_clusters == 1:
        return YES if weak else PARTLY
    if weak and mean is not None and mean >= STABLE:
        return DIVISION
    if weak or (mean is not None and mean < SHAKY):
        return NO
    firm = evidence is not None and mean is not None and mean >= STABLE
    return YES if firm and clear in (None, CLEAR) else PARTLY


def nested(values: Any, labels: np.ndarray) -> bool:
    """Whether two clusters have nearly the same middle and differ in how far they reach."""
    dense = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
    spread = dense.std(axis=0)
    dense = (dense - dense.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    parts = [dense[labels == k] for k in np.unique(labels[labels >= 0])]
    for a, b in combinations([part for part in parts if len(part) > 1], 2):
        between = b.mean(axis=0) - a.mean(axis=0)
        far = float(np.linalg.norm(between))
        along = between / far if far > 0 else between
        within = np.sqrt((np.var(a @ along) + np.var(b @ along)) / 2)
        reach = sorted(float(np.sqrt(part.var(axis=0).sum())) for part in (a, b))
        if far <= APART * within and reach[1] > WIDER * reach[0]:
            return True
    return False


def _of_structure(subject: Subject, evidence: float | None) -> list[str]:
    verdict = subject.estimator._verdict()
    if verdict is not None:
        return [verdict]
    if evidence is None:
        return []
    if evidence < EVIDENCE:
        return [ADVICE[NONE]]
    return [
        f"There is structure: these rows can be cut {evidence:.1f} standard deviations better than "
        f"rows without clusters that are most like them (at least {EVIDENCE:g} is evidence)."
    ]


def _of_stability(own: np.ndarray | None, mean: float | None) -> list[str]:
    if own is None or mean is None:
        return []
    word = "stable" if mean >= STABLE else "mostly stable" if mean >= SHAKY else "not stable"
    unsure = float(np.mean(own[~np.isnan(own)] < SURE_ROW))
    rest = f"{share(unsure)} of the rows are near a boundary" if unsure else "no row is unsure"
    return [
        f"Labels are {word}: a fit of other rows gives a row the same label with a chance of "
        f"{share(mean)} on average; {rest} (a chance below {share(SURE_ROW)})."
    ]


def _of_agreement(model: Any, others: dict[str, float]) -> list[str]:
    choice = model._choice()
    if choice is not None and choice.records and "agreement" in choice.records[0]:
        return [
            "Other families of methods find these clusters with an adjusted Rand index of "
            f"{choice.records[0]['agreement']:.2f} (1 is the same, 0 chance)."
        ]
    if not others:
        return []
    parts = [
        f"{name} finds {_likeness(found)} ({round(found, 2) + 0.0:.2f})"
        for name, found in others.items()
    ]
    shape = ""
    if max(others.values()) < ALIKE:
        shape = " That alone is no fault: these simple methods find round clusters, and no others."
    return [f"Other methods: {', '.join(parts)}; 1 is the same, 0 chance.{shape}"]


def _likeness(index: float) -> str:
    return "the same" if index >= SAME else "similar clusters" if index >= ALIKE else "others"


def _evidence(subject: Subject) -> float | None:
    values = subject.values
    if values.shape[0] < 32 or min(values.shape[0], LOOKED_AT) * values.shape[1] > MOST_CELLS:
        return None
    some = np.linspace(0, values.shape[0] - 1, min(LOOKED_AT, values.shape[0])).astype(int)
    rows = values[some]
    dense = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
    with threadpool_limits(1):
        seen = telling(within_bounds(dense))
        if seen.shape[1] > WIDE:
            seen = seen @ leading_components(seen, COMPONENTS, 0)[1].T
        return evidence_of(seen, 0)[0]


def _chances(subject: Subject) -> np.ndarray | None:
    """Chances by fits of other rows; those of a model from a file are of the sampled rows."""
    model = subject.estimator._shown
    if subject.n_clusters == 1:
        return None
    if model._fitted("_refits") is None:
        model = copy.copy(model)
        n = subject.values.shape[0]
        model._refits = Refits.of(subject.values, np.ones(n), np.arange(n))
    try:
        found = model._chances(subject.numbers)
    except UserError:  # too few rows, or too many alike, for fits of some of them
        return None
    return None if found is None else np.asarray(found)


def _others(subject: Subject) -> dict[str, float]:
    """How far methods that everybody has find the same clusters in some of the rows."""
    inside = np.flatnonzero(subject.sampled >= 0)
    some = inside[np.linspace(0, len(inside) - 1, min(COMPARED, len(inside))).astype(int)]
    labels = subject.sampled[some]
    k = len(np.unique(labels))
    if k < 2 or len(some) <= k:
        return {}
    rows = subject.values[some]
    found = {
        "k-means on standardised columns": float(
            adjusted_rand_score(labels, k_means_labels(rows, k))
        )
    }
    if not sp.issparse(rows):
        values = np.asarray(rows, dtype=np.float64)
        spread = values.std(axis=0)
        scaled = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        ward = AgglomerativeClustering(k).fit_predict(scaled)
        found["Ward's method"] = float(adjusted_rand_score(labels, ward))
    return found
