"""Models of scores on kernel features as named arrays and a few settings, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.clusterers.model import KernelModel
from dmkc.kernels import ColumnMaker, FeatureMap, Kernel, Scaling
from dmkc.kernels.columns import is_direct
from dmkc.modelfile.errors import ModelFileError
from dmkc.modelfile.kind import (
    Arrays,
    ModelKind,
    check_arrays,
    read_count,
    read_kernels,
    read_precision,
)
from dmkc.modelfile.registry import kernel_to_json

DECISIONS = ("none", "sign", "largest", "nearest")


@dataclass(frozen=True)
class FeatureSettings:
    """What a file says of a feature map beside its arrays."""

    kernels: tuple[Kernel, ...]
    direct: list[bool]
    """Which kernels use the columns directly."""
    dtype: np.dtype
    leaf_rows: int
    decision: str
    """How scores become labels."""


class KernelScores(ModelKind):
    """Scores on kernel features."""

    name = "kernel-scores"
    model = KernelModel

    def settings(self, model: KernelModel) -> dict[str, Any]:
        return feature_settings(model.features) | {"decision": model.decision}

    def arrays(self, model: KernelModel) -> dict[str, Any]:
        return feature_arrays(model.features) | {
            "weights": model.weights,
            "biases": model.biases,
            "kernel_weights": model.kernel_weights,
        }

    def read(self, stored: dict[str, Any]) -> FeatureSettings:
        return read_features(stored)

    def dimensions(self, settings: FeatureSettings) -> dict[str, int]:
        return feature_dimensions(settings) | {"weights": 2, "biases": 1, "kernel_weights": 1}

    def build(self, settings: FeatureSettings, arrays: Arrays, n_columns: Any) -> KernelModel:
        wanted, size = feature_shapes(settings, arrays, n_columns)
        scores = len(arrays["biases"])
        wanted |= {
            "weights": (scores, size),
            "biases": (scores,),
            "kernel_weights": (len(settings.kernels),),
        }
        check_arrays(arrays, wanted)
        features = build_features(settings, arrays)
        weights, biases = arrays["weights"], arrays["biases"]
        decision = settings.decision
        if decision == "largest" and scores < 2:  # what older files say of any number of scores
            decision = "sign" if scores else "none"
        if scores != {"none": 0, "sign": 1}.get(decision, max(scores, 2)):
            raise ModelFileError(f"{scores} score(s) cannot be decided by {decision!r}.")
        return KernelModel(features, weights, biases, arrays["kernel_weights"], decision)


def feature_settings(features: FeatureMap) -> dict[str, Any]:
    """Kernels, precision and tiling of a feature map."""
    columns = features.columns
    return {
        "kernels": [kernel_to_json(kernel) for kernel in columns.kernels],
        "direct": [white is None for white in features.whitening],
        "dtype": np.dtype(columns.dtype).name,
        "leaf_rows": int(columns.leaf_rows),
    }


def feature_arrays(features: FeatureMap) -> dict[str, Any]:
    """Every array of a feature map; a direct kernel has no whitening."""
    columns = features.columns
    found: dict[str, Any] = {
        "landmarks": columns.landmarks,
        "shift": columns.scaling.shift,
        "factor": columns.scaling.factor,
        "scales": features.scale,
    }
    for k, (mean, white) in enumerate(zip(features.mean, features.whitening, strict=True)):
        found[f"mean_{k}"] = mean
        if white is not None:
            found[f"whitening_{k}"] = white
    return found


def read_features(stored: dict[str, Any]) -> FeatureSettings:
    """Kernels, which of them are direct, precision and leaf rows, checked."""
    kernels, direct = read_kernels(stored), stored.get("direct")
    if not isinstance(direct, list) or len(direct) != len(kernels):
        raise ModelFileError("The file does not say which kernels use the columns directly.")
    if not all(isinstance(plain, bool) for plain in direct):
        raise ModelFileError("The file does not say which kernels use the columns directly.")
    dtype = read_precision(stored)
    leaf_rows = read_count(stored, "leaf_rows", "The rows of a leaf")
    decision = stored.get("decision", "largest")
    if decision not in DECISIONS:
        raise ModelFileError(f"Scores cannot be decided by {decision!r}.")
    return FeatureSettings(kernels, direct, dtype, leaf_rows, decision)


def feature_dimensions(settings: FeatureSettings) -> dict[str, int]:
    """The arrays of a feature map and their dimensions."""
    found = {"landmarks": 2, "shift": 1, "factor": 1, "scales": 1}
    for k, plain in enumerate(settings.direct):
        found |= {f"mean_{k}": 1} if plain else {f"mean_{k}": 1, f"whitening_{k}": 2}
    return found


def feature_shapes(
    settings: FeatureSettings, arrays: Arrays, n_columns: Any
) -> tuple[dict[str, tuple[int, ...]], int]:
    """The shapes that the arrays of a feature map must have, and the number of features."""
    kernels, direct = settings.kernels, settings.direct
    d, m = len(arrays["shift"]), len(arrays["landmarks"])
    if d != n_columns or d == 0:
        raise ModelFileError(f"The model is for {n_columns!r} columns, but its shift has {d}.")
    if m == 0:
        raise ModelFileError("The model has no landmarks.")
    wanted: dict[str, tuple[int, ...]] = {
        "shift": (d,),
        "factor": (d,),
        "landmarks": (m, d),
        "scales": (len(kernels),),
    }
    size = 0
    for k, kernel in enumerate(kernels):
        if direct[k] != is_direct(kernel, d):
            raise ModelFileError(f"Kernel {k} ({kernel}) is stored in a form it cannot have.")
        rank = d if direct[k] else arrays[f"whitening_{k}"].shape[-1]
        if not direct[k]:
            wanted[f"whitening_{k}"] = (m, rank)
        wanted[f"mean_{k}"] = (rank,)
        size += rank
    return wanted, size


def build_features(settings: FeatureSettings, arrays: Arrays) -> FeatureMap:
    """The feature map of checked settings and arrays."""
    scaling = Scaling(arrays["shift"], arrays["factor"])
    columns = ColumnMaker(
        scaling, settings.kernels, arrays["landmarks"], settings.dtype, settings.leaf_rows
    )
    each = range(len(settings.kernels))
    return FeatureMap(
        columns,
        tuple(None if settings.direct[k] else arrays[f"whitening_{k}"] for k in each),
        tuple(arrays[f"mean_{k}"] for k in each),
        tuple(float(scale) for scale in arrays["scales"]),
    )
