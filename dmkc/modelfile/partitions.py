"""Models of centroids in an embedding of kernel columns as named arrays and settings, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.clusterers.kmeans.embedded import PartitionModel
from dmkc.kernels import Kernel, Scaling
from dmkc.kernels.columns import column_offsets
from dmkc.kernels.unit import DiagonalMaker, Embedding, RowScales
from dmkc.modelfile.errors import ModelFileError
from dmkc.modelfile.kind import (
    Arrays,
    ModelKind,
    check_arrays,
    read_count,
    read_flag,
    read_kernels,
    read_precision,
)
from dmkc.modelfile.registry import kernel_to_json


@dataclass(frozen=True)
class EmbeddingSettings:
    """What a file says of an embedding beside its arrays."""

    kernels: tuple[Kernel, ...]
    dtype: np.dtype
    leaf_rows: int
    cosine: bool
    unit_rows: bool


class Partitions(ModelKind):
    """Centroids in an embedding of kernel columns."""

    name = "partition"
    model = PartitionModel

    def settings(self, model: PartitionModel) -> dict[str, Any]:
        embedding = model.embedding
        columns = embedding.columns
        return {
            "kernels": [kernel_to_json(kernel) for kernel in columns.kernels],
            "dtype": np.dtype(columns.dtype).name,
            "leaf_rows": int(columns.leaf_rows),
            "cosine": bool(embedding.scales.cosine),
            "unit_rows": bool(embedding.unit_rows),
        }

    def arrays(self, model: PartitionModel) -> dict[str, Any]:
        embedding, scales = model.embedding, model.embedding.scales
        columns = embedding.columns
        return {
            "landmarks": columns.landmarks,
            "shift": columns.scaling.shift,
            "factor": columns.scaling.factor,
            "tilts": scales.tilts,
            "squares": scales.squares,
            "factors": scales.factors,
            "matrix": embedding.matrix,
            "offsets": embedding.offsets,
            "centres": model.centres,
        }

    def read(self, stored: dict[str, Any]) -> EmbeddingSettings:
        return EmbeddingSettings(
            read_kernels(stored),
            read_precision(stored),
            read_count(stored, "leaf_rows", "The rows of a leaf"),
            read_flag(stored, "cosine"),
            read_flag(stored, "unit_rows"),
        )

    def dimensions(self, settings: EmbeddingSettings) -> dict[str, int]:
        flat = ("shift", "factor", "tilts", "squares", "factors")
        square = ("landmarks", "matrix", "offsets", "centres")
        return {name: 1 for name in flat} | {name: 2 for name in square}

    def build(self, settings: EmbeddingSettings, arrays: Arrays, n_columns: Any) -> PartitionModel:
        d, count = len(arrays["shift"]), len(settings.kernels)
        marks, (k, dimensions) = len(arrays["landmarks"]), arrays["centres"].shape
        if d != n_columns or d == 0:
            raise ModelFileError(f"The model is for {n_columns!r} columns, but its shift has {d}.")
        if marks == 0 or k == 0:
            raise ModelFileError("The model has no landmarks or no clusters.")
        width = column_offsets(settings.kernels, d, marks)[-1]
        check_arrays(
            arrays,
            {
                "shift": (d,),
                "factor": (d,),
                "landmarks": (marks, d),
                "tilts": (width,),
                "squares": (count,),
                "factors": (count,),
                "matrix": (width, dimensions),
                "offsets": (count, dimensions),
                "centres": (k, dimensions),
            },
        )
        scaling = Scaling(arrays["shift"], arrays["factor"])
        columns = DiagonalMaker(
            scaling, settings.kernels, arrays["landmarks"], settings.dtype, settings.leaf_rows
        )
        scales = RowScales(
            columns, arrays["tilts"], arrays["squares"], arrays["factors"], settings.cosine
        )
        embedding = Embedding(scales, arrays["matrix"], arrays["offsets"], settings.unit_rows)
        return PartitionModel(embedding, arrays["centres"])
