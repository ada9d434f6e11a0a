"""A method in one file: every cluster has a direction of its own (spherical k-means).

Directions are unit vectors in the space of the kernels' centred features, and a row belongs to the
one along which it reaches farthest (Dhillon and Modha 2001).  One scan sums the features of every
cluster; these sums, brought to length 1, are the next directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmkc.extending import (
    MAX_ITER_REACHED,
    SETTLED,
    FitEnd,
    KernelClusterer,
    KernelModel,
    LeafScan,
    Learned,
    Named,
    ScanRequest,
    Scores,
    ScoreSpace,
    Stage,
    race,
    register_estimator,
    shared,
    starts_on_sample,
)


@dataclass(frozen=True)
class DirectionScan(LeafScan):
    """Sums of the stored values of every cluster's rows, their weights, and how far they reach."""

    scores: Scores
    name = "directions"

    def leaf(self, record):
        reach = record.rows @ self.scores.w.T + self.scores.b
        nearest = reach.argmax(axis=1)[:, None] == np.arange(reach.shape[1])
        members = nearest * record.weights_in(np.dtype(np.float64))[:, None]
        return members.T @ record.rows, members.sum(axis=0), np.sum(members * reach)


@dataclass(frozen=True, kw_only=True)
class DirectionFit(FitEnd):
    """Directions, and the objective that a scan found at them."""

    directions: np.ndarray
    objective: float


class DirectionClustering(KernelClusterer):
    """Clusters by directions in the joint features of some kernels, all of the same weight.

    Attributes
    ----------
    objective_ : float, 1 less the mean reach of the rows, which is at most 1.
    """

    summary = "a direction in the space of features for every cluster"
    declared = (shared.N_CLUSTERS, *shared.FEATURES, shared.TOL, shared.MAX_ITER, *shared.RUNNING)

    def _learn(self, prepared, job):
        features, sample, m = prepared.features, prepared.sample, self.n_clusters
        if m == 1:
            return None
        phi = features.features(sample.stored) * sample.weights[:, None]
        init = "auto" if job.start is None else job.start  # an earlier model to begin from
        starts = [
            Named(start.name, unit([phi[start.labels == c].sum(axis=0) for c in range(m)]))
            for start in starts_on_sample(prepared, init, 1, m, job.seed)
        ]

        def begin(name, directions):
            return self._rounds_of(name, "sample", directions, features, sample, self.max_iter, job)

        then = None
        if not prepared.sample_is_all:
            then = self._on_all(features, prepared.all_rows, self.max_iter, job)
        found = race(starts, Stage(sample, begin), then, lambda fit: fit.objective)
        return Learned(found.value, found.name, job.own)

    def _continue_on_all_rows(self, learned, features, rows, job):
        return learned.continued(self._on_all(features, rows, self.polish, job))

    def _on_all(self, features, rows, most, job):
        def begin(name, fit):
            return self._rounds_of(name, "all", fit.directions, features, rows, most, job)

        return Stage(rows, begin)

    def _rounds_of(self, name, on, directions, features, rows, most, job):
        """A fit: it yields what it wants of a scan, and is sent the sums over all rows."""
        space = ScoreSpace(features, len(directions), "largest")
        longest = np.sqrt(len(features.kernels))  # every kernel's features have mean square 1
        objective = np.inf
        for n_iter in range(most + 1):  # the last round only measures
            scores, before = space.scores(directions, np.zeros(len(directions))), objective
            sums, shares, reach = yield ScanRequest(DirectionScan(scores))
            objective = float(1.0 - reach / (shares.sum() * longest))
            text = f"{on} rows, round {n_iter}: objective {objective:.6g}"
            job.progress.note(text, start=name, on=on, round=n_iter, objective=objective)
            settled = before - objective <= self.tol * abs(objective)
            if settled or n_iter == most:
                break
            pulls = zip(sums, shares, directions, strict=True)
            directions = unit([features.slope(s, n) if n else old for s, n, old in pulls])
        return DirectionFit(
            directions=directions,
            objective=objective,
            shares=shares,
            n_iter=n_iter,
            converged=settled,
            reason=SETTLED if settled else MAX_ITER_REACHED,
        )

    def _store_fit(self, learned, prepared, rows):
        fit, features = learned.fit, prepared.features
        self.kernel_weights_ = np.full(len(features.kernels), 1.0 / len(features.kernels))
        no_bias = np.zeros(len(fit.directions))
        model = KernelModel.of_scores(features, fit.directions, no_bias, self.kernel_weights_)
        self.model_ = model.reordered(fit.shares, rows)
        self.objective_ = fit.objective


def unit(vectors):
    """Vectors brought to length 1."""
    size = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors) / np.where(size > 0, size, 1.0)


register_estimator("directions", DirectionClustering)
