"""The clusterings that are joined: those that a user gives, or spectral ones that differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from dmkc.clusterers.base import Job
from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.fits import Named
from dmkc.clusterers.kmeans.embedded import PartitionModel, on_embedded_sample
from dmkc.clusterers.kmeans.ensemble import MemberClusters
from dmkc.clusterers.kmeans.lloyd import Run, seeded
from dmkc.clusterers.kmeans.spectral import coordinates, dimensions_for
from dmkc.clusterers.members import Refits
from dmkc.clusterers.parameters import Kind
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.rowset import RowSet, SampleRows, SpreadRows
from dmkc.data import RowRecord
from dmkc.errors import UserError
from dmkc.kernels import Kernel, Neighbours
from dmkc.kernels.neighbours import K_AMONG_CENTROIDS, K_AMONG_ROWS
from dmkc.scan.survey import Survey

SPREAD_OF_K = (0.5, 1.0, 1.5, 2.0)
"""Numbers of neighbours of the members, in parts of what a single graph has by default."""
MORE_CLUSTERS = 3
"""Members have at most this many times the number of joint clusters."""


@dataclass(frozen=True, kw_only=True)
class Members(Kind):
    """A list of estimators, each of them itself or by its short name."""

    noun: str = "list of estimators, list of names"
    shown: str = "A,B"

    def _check(self, name: str, value: Any) -> Any:
        if not isinstance(value, list | tuple) or len(value) < 2:
            raise UserError(f"`{name}` must be a list of at least two estimators of dmkc.")
        for member in value:
            if not isinstance(member, RowClusterer | str):
                kind = member.__name__ if isinstance(member, type) else type(member).__name__
                raise UserError(f"`{name}` must be estimators of dmkc, but one is a {kind}.")
        return value

    def _parse(self, name: str, text: str) -> list[str]:
        return [item.strip() for item in text.split(",") if item.strip()]


def made_members(
    given: Any, known: Mapping[str, type[RowClusterer]], n_clusters: Any, random_state: Any
) -> list[RowClusterer]:
    """Copies of the members, with all parameters checked; names are given clusters and seed."""
    made = []
    for member in given:
        if isinstance(member, str) and member not in known:
            raise UserError(
                f"There is no method {member!r} for members; known are {', '.join(known)}."
            )
        if isinstance(member, str):
            cls: Any = known[member]
            copy = cls(n_clusters, random_state=random_state)
        else:
            copy = clone(member)
        copy._checked()
        made.append(copy)
    return made


@dataclass(frozen=True)
class MemberRows:
    """The clusters of all rows in every clustering, ready for scans."""

    all_rows: RowSet
    sample: SampleRows
    members: MemberClusters
    survey: Survey
    kept: Refits
    """Some of the rows themselves."""

    @classmethod
    def of(cls, members: MemberClusters, prepared: Prepared, job: Job) -> MemberRows:
        """They are held where they are if they fit in memory, else found anew on every scan."""
        survey, engine, grid = prepared.survey, job.engine, prepared.grid
        weights = None if job.sample_weight is None else survey.sample_weights
        record = members(RowRecord(survey.sample, weights))
        sample = SampleRows(record, grid.leaf_rows)
        kept = Refits.of(survey.sample, survey.sample_weights, prepared.positions)
        if prepared.sample_is_all:
            return cls(sample, sample, members, survey, kept)
        fits = grid.n_rows * members.width * members.dtype.itemsize <= engine.memory
        blocks = engine.hold(members, prepared.blocks, "clusters") if fits else prepared.blocks
        make = None if fits else members
        rows = SpreadRows(engine, grid, blocks, members.width, members.dtype, make)
        rows.n_scans = 1 + fits
        return cls(rows, sample, members, survey, kept)


def graph_kernels(n_rows: int, anchors: int, most_clusters: int) -> tuple[Kernel, ...]:
    """Neighbour graphs that differ in anchors and neighbours."""
    dimensions = dimensions_for(MORE_CLUSTERS * most_clusters)
    if n_rows <= 2 * anchors:
        graphs = [(K_AMONG_ROWS, anchors)]
    else:
        fewer = max(2, 4 * anchors // 5)
        graphs = [(K_AMONG_CENTROIDS, anchors), (K_AMONG_CENTROIDS, fewer)]
    return tuple(
        Neighbours(max(2, round(part * k)), count, 0, dimensions)
        for part in SPREAD_OF_K
        for k, count in graphs
    )


def spectral_members(
    prepared: Prepared, count: int, fewest: int, most: int, seed: int
) -> list[PartitionModel]:
    """Clusterings of the sample, by k-means on the neighbour graphs of all rows.

    They have different graphs and numbers of clusters; `fewest` and `most` are the joint ones.
    """
    features, sample = prepared.features, prepared.sample
    rng = np.random.default_rng([seed, 13])
    enough = max(2, int(np.count_nonzero(sample.weights)) // 3)
    most = min(MORE_CLUSTERS * most, enough)
    models = []
    for number in range(count):
        k = int(rng.integers(min(fewest, most), most + 1))
        embedding = coordinates(features, number % len(features.kernels), k)
        rows = embedding(sample.record)
        first = Run(centres=seeded(rows, sample.weights, k, int(rng.integers(2**31))))
        (found,) = on_embedded_sample(rows, sample.weights, 100).run([Named("k-means++", first)])
        models.append(PartitionModel(embedding, found.value.centres))
    return models
