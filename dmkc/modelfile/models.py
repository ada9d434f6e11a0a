"""Models of all kinds as named arrays and a few settings, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.clusterers.kmeans.centroids import CentroidModel
from dmkc.clusterers.kmeans.embedded import PartitionModel
from dmkc.clusterers.model import KernelModel
from dmkc.kernels import FeatureMap, KernelPlan
from dmkc.kernels.base import StoredMap, map_of
from dmkc.kernels.unit import Embedding, RowScales
from dmkc.modelfile.consensus import Consensus
from dmkc.modelfile.kinds import ModelKind, PlanKind, check_arrays, named_kind
from dmkc.modelfile.values import Arrays, ModelFileError, read_count, read_flag, read_precision
from dmkc.scan.assign import Frame

DECISIONS = ("none", "sign", "largest", "nearest")
OWN = ("tilts", "squares", "factors", "matrix", "offsets", "centres")


@dataclass(frozen=True)
class ScoreSettings:
    """What a file says of a model of scores beside its plan and its arrays."""

    mapped: list[bool]
    """Which kernels have an array that maps stored values to features."""
    decision: str
    """How scores become labels."""


class KernelScores(PlanKind):
    """Scores on kernel features."""

    name = "kernel-scores"
    model = KernelModel

    def plan_of(self, model: KernelModel) -> KernelPlan:
        return model.features.plan

    def own_settings(self, model: KernelModel) -> dict[str, Any]:
        direct = [stored.array is None for stored in model.features.maps]
        return {"direct": direct, "decision": model.decision}

    def own_arrays(self, model: KernelModel) -> dict[str, Any]:
        features = model.features
        found: dict[str, Any] = {"scales": features.scale}
        for k, (mean, stored) in enumerate(zip(features.mean, features.maps, strict=True)):
            found[f"mean_{k}"] = mean
            if stored.array is not None:
                found[f"whitening_{k}"] = stored.array
        return found | {
            "weights": model.weights,
            "biases": model.biases,
            "kernel_weights": model.kernel_weights,
        }

    def read_own(self, stored: dict[str, Any], n_kernels: int) -> ScoreSettings:
        direct = stored.get("direct")
        if not isinstance(direct, list) or len(direct) != n_kernels:
            raise ModelFileError("The file does not say which kernels use the columns directly.")
        if not all(isinstance(plain, bool) for plain in direct):
            raise ModelFileError("The file does not say which kernels use the columns directly.")
        decision = stored.get("decision", "largest")
        if decision not in DECISIONS:
            raise ModelFileError(f"Scores cannot be decided by {decision!r}.")
        return ScoreSettings([not plain for plain in direct], decision)

    def own_names(self, settings: ScoreSettings) -> list[str]:
        each = [f"mean_{k}" for k in range(len(settings.mapped))]
        maps = [f"whitening_{k}" for k, mapped in enumerate(settings.mapped) if mapped]
        return [*each, *maps, "scales", "weights", "biases", "kernel_weights"]

    def build_on(self, plan: KernelPlan, settings: ScoreSettings, arrays: Arrays) -> KernelModel:
        maps: list[StoredMap] = []
        wanted: dict[str, tuple[int, ...]] = {}
        for k, fitted in enumerate(plan.fitted):
            array = arrays[f"whitening_{k}"] if settings.mapped[k] else None
            try:
                maps.append(map_of(array, fitted.stored_width))
            except ValueError as problem:
                raise ModelFileError(f"Kernel {k} ({fitted.kernel}): {problem}") from None
            wanted[f"mean_{k}"] = (maps[-1].n_features,)
            if array is not None:
                wanted[f"whitening_{k}"] = array.shape
        scores, size = arrays["biases"].size, sum(stored.n_features for stored in maps)
        wanted |= {
            "scales": (len(maps),),
            "weights": (scores, size),
            "biases": (scores,),
            "kernel_weights": (len(maps),),
        }
        check_arrays(arrays, wanted)
        means = tuple(arrays[f"mean_{k}"] for k in range(len(maps)))
        scales = tuple(float(scale) for scale in arrays["scales"])
        features = FeatureMap(plan, tuple(maps), means, scales)
        weights, biases = arrays["weights"], arrays["biases"]
        decision = settings.decision
        if decision == "largest" and scores < 2:  # what older files say of any number of scores
            decision = "sign" if scores else "none"
        if scores != {"none": 0, "sign": 1}.get(decision, max(scores, 2)):
            raise ModelFileError(f"{scores} score(s) cannot be decided by {decision!r}.")
        return KernelModel(features, weights, biases, arrays["kernel_weights"], decision)


class Centres(ModelKind):
    """Centroids in shifted and scaled columns."""

    name = "centroids"
    model = CentroidModel

    def settings(self, model: CentroidModel) -> dict[str, Any]:
        return {"dtype": model.frame.dtype.name, "leaf_rows": int(model.leaf_rows)}

    def arrays(self, model: CentroidModel) -> dict[str, Any]:
        frame = model.frame
        return {"centres": model.centres, "shift": frame.shift, "factor": frame.factor}

    def read(self, stored: dict[str, Any]) -> tuple[np.dtype, int]:
        return read_precision(stored), read_count(stored, "leaf_rows", "The rows of a leaf")

    def array_names(self, settings: Any) -> list[str]:
        return ["centres", "shift", "factor"]

    def build(
        self, settings: tuple[np.dtype, int], arrays: Arrays, n_columns: Any
    ) -> CentroidModel:
        if arrays["centres"].ndim != 2:
            raise ModelFileError("The centroids of the model are not a matrix.")
        k, d = arrays["centres"].shape
        if d != n_columns or d == 0 or k == 0:
            raise ModelFileError(
                f"The model is for {n_columns!r} columns, but its centroids have shape {(k, d)}."
            )
        wanted: dict[str, tuple[int, ...]] = {"centres": (k, d)}
        for name in ("shift", "factor"):
            wanted[name] = (d,) if arrays[name].size else (0,)
        if arrays["shift"].size and not arrays["factor"].size:
            raise ModelFileError("The model shifts columns but does not say how it scales them.")
        check_arrays(arrays, wanted)
        dtype, leaf_rows = settings
        return CentroidModel(
            Frame(arrays["shift"], arrays["factor"], dtype), arrays["centres"], leaf_rows
        )


@dataclass(frozen=True)
class EmbeddingSettings:
    """What a file says of an embedding beside its plan and its arrays."""

    cosine: bool
    unit_rows: bool


class Partitions(PlanKind):
    """Centroids in an embedding of kernel columns."""

    name = "partition"
    model = PartitionModel

    def plan_of(self, model: PartitionModel) -> KernelPlan:
        return model.embedding.plan

    def own_settings(self, model: PartitionModel) -> dict[str, Any]:
        embedding = model.embedding
        return {"cosine": bool(embedding.scales.cosine), "unit_rows": bool(embedding.unit_rows)}

    def own_arrays(self, model: PartitionModel) -> dict[str, Any]:
        embedding, scales = model.embedding, model.embedding.scales
        return {
            "tilts": scales.tilts,
            "squares": scales.squares,
            "factors": scales.factors,
            "matrix": embedding.matrix,
            "offsets": embedding.offsets,
            "centres": model.centres,
        }

    def read_own(self, stored: dict[str, Any], n_kernels: int) -> EmbeddingSettings:
        return EmbeddingSettings(read_flag(stored, "cosine"), read_flag(stored, "unit_rows"))

    def own_names(self, settings: EmbeddingSettings) -> list[str]:
        return list(OWN)

    def needs_diagonals(self, settings: EmbeddingSettings) -> bool:
        return settings.cosine

    def build_on(
        self, plan: KernelPlan, settings: EmbeddingSettings, arrays: Arrays
    ) -> PartitionModel:
        if arrays["centres"].ndim != 2 or not len(arrays["centres"]):
            raise ModelFileError("The model has no clusters.")
        (k, dimensions), count, width = arrays["centres"].shape, len(plan.fitted), plan.offsets[-1]
        check_arrays(
            arrays,
            {
                "tilts": (width,),
                "squares": (count,),
                "factors": (count,),
                "matrix": (width, dimensions),
                "offsets": (count, dimensions),
                "centres": (k, dimensions),
            },
        )
        scales = RowScales(
            plan, arrays["tilts"], arrays["squares"], arrays["factors"], settings.cosine
        )
        embedding = Embedding(scales, arrays["matrix"], arrays["offsets"], settings.unit_rows)
        return PartitionModel(embedding, arrays["centres"])


ALONE: tuple[ModelKind, ...] = (KernelScores(), Centres(), Partitions())
KINDS = (*ALONE, Consensus(ALONE))
"""The first is what files of the first release hold without saying so."""


def kind_of(model: Any) -> ModelKind:
    """The kind of a model in memory."""
    return next(kind for kind in KINDS if kind.model is type(model))


def kind_in(stored: Any) -> ModelKind:
    """The kind that a file's description names."""
    if not isinstance(stored, dict):
        raise ModelFileError("The description of the model is missing from the file.")
    return named_kind(stored.get("kind", KINDS[0].name), KINDS)
