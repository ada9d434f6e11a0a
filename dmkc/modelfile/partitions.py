"""Models of centroids in an embedding of kernel columns as named arrays and settings, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dmkc.clusterers.kmeans.embedded import PartitionModel
from dmkc.kernels.unit import Embedding, RowScales
from dmkc.modelfile.errors import ModelFileError
from dmkc.modelfile.kind import Arrays, ModelKind, check_arrays, read_flag
from dmkc.modelfile.plans import StoredPlan, build_plan, plan_arrays, plan_settings, read_plan

OWN = ("tilts", "squares", "factors", "matrix", "offsets", "centres")


@dataclass(frozen=True)
class EmbeddingSettings:
    """What a file says of an embedding beside its arrays."""

    plan: StoredPlan
    cosine: bool
    unit_rows: bool


class Partitions(ModelKind):
    """Centroids in an embedding of kernel columns."""

    name = "partition"
    model = PartitionModel

    def settings(self, model: PartitionModel) -> dict[str, Any]:
        embedding = model.embedding
        return plan_settings(embedding.plan) | {
            "cosine": bool(embedding.scales.cosine),
            "unit_rows": bool(embedding.unit_rows),
        }

    def arrays(self, model: PartitionModel) -> dict[str, Any]:
        embedding, scales = model.embedding, model.embedding.scales
        return plan_arrays(embedding.plan) | {
            "tilts": scales.tilts,
            "squares": scales.squares,
            "factors": scales.factors,
            "matrix": embedding.matrix,
            "offsets": embedding.offsets,
            "centres": model.centres,
        }

    def read(self, stored: dict[str, Any]) -> EmbeddingSettings:
        cosine, unit_rows = read_flag(stored, "cosine"), read_flag(stored, "unit_rows")
        return EmbeddingSettings(read_plan(stored), cosine, unit_rows)

    def array_names(self, settings: EmbeddingSettings) -> list[str]:
        return [*settings.plan.array_names, *OWN]

    def build(self, settings: EmbeddingSettings, arrays: Arrays, n_columns: Any) -> PartitionModel:
        plan = build_plan(settings.plan, arrays, n_columns, diagonals=settings.cosine)
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
