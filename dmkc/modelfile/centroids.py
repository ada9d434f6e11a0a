"""Models of centroids as named arrays and a few settings, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmkc.clusterers.kmeans.centroids import CentroidModel
from dmkc.modelfile.errors import ModelFileError
from dmkc.modelfile.kind import Arrays, ModelKind, check_arrays, read_count, read_precision
from dmkc.scan.assign import Frame


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
