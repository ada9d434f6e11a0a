"""A fitted model as named arrays and a few settings, and back with every shape checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmkc.clusterers.model import KernelModel
from dmkc.kernels import ColumnMaker, FeatureMap, Kernel, Scaling
from dmkc.kernels.columns import is_direct
from dmkc.modelfile.errors import ModelFileError
from dmkc.modelfile.registry import kernel_from_json, kernel_to_json

FIXED = ("landmarks", "shift", "factor", "scales", "weights", "biases", "kernel_weights")
PRECISIONS = ("float32", "float64")
MOST_KERNELS = 10_000


def array_names(direct: list[bool]) -> list[str]:
    """The arrays of a model, in a fixed order; a direct kernel has no whitening."""
    names = list(FIXED)
    for k, plain in enumerate(direct):
        names += [f"mean_{k}"] if plain else [f"mean_{k}", f"whitening_{k}"]
    return names


def model_settings(model: KernelModel) -> dict[str, Any]:
    """What is not an array: kernels, precision, tiling."""
    columns = model.features.columns
    return {
        "kernels": [kernel_to_json(kernel) for kernel in columns.kernels],
        "direct": [white is None for white in model.features.whitening],
        "dtype": np.dtype(columns.dtype).name,
        "leaf_rows": int(columns.leaf_rows),
    }


def model_arrays(model: KernelModel) -> dict[str, np.ndarray]:
    """Every array of a model by its name in the file, in float64."""
    features, columns = model.features, model.features.columns
    found: dict[str, Any] = {
        "landmarks": columns.landmarks,
        "shift": columns.scaling.shift,
        "factor": columns.scaling.factor,
        "scales": features.scale,
        "weights": model.weights,
        "biases": model.biases,
        "kernel_weights": model.kernel_weights,
    }
    for k, (mean, white) in enumerate(zip(features.mean, features.whitening, strict=True)):
        found[f"mean_{k}"] = mean
        if white is not None:
            found[f"whitening_{k}"] = white
    return {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}


def read_settings(stored: Any) -> tuple[tuple[Kernel, ...], list[bool], np.dtype, int]:
    """Kernels, which of them are direct, precision and leaf rows, checked."""
    if not isinstance(stored, dict):
        raise ModelFileError("The description of the model is missing from the file.")
    kernels, direct = stored.get("kernels"), stored.get("direct")
    leaf_rows = stored.get("leaf_rows")
    if not isinstance(kernels, list) or not 0 < len(kernels) <= MOST_KERNELS:
        raise ModelFileError("The file does not list the kernels of the model.")
    if not isinstance(direct, list) or len(direct) != len(kernels):
        raise ModelFileError("The file does not say which kernels use the columns directly.")
    if not all(isinstance(plain, bool) for plain in direct):
        raise ModelFileError("The file does not say which kernels use the columns directly.")
    if stored.get("dtype") not in PRECISIONS:
        raise ModelFileError(f"The precision must be float32 or float64, not {stored['dtype']!r}.")
    if not isinstance(leaf_rows, int) or isinstance(leaf_rows, bool) or leaf_rows < 1:
        raise ModelFileError(f"The rows of a leaf must be a positive number, not {leaf_rows!r}.")
    found = tuple(kernel_from_json(kernel) for kernel in kernels)
    return found, direct, np.dtype(stored["dtype"]), leaf_rows


def build_model(settings: Any, arrays: dict[str, np.ndarray], n_columns: Any) -> KernelModel:
    """The model of checked settings and arrays."""
    kernels, direct, dtype, leaf_rows = read_settings(settings)
    _check_shapes(kernels, direct, arrays, n_columns)
    scaling = Scaling(arrays["shift"], arrays["factor"])
    columns = ColumnMaker(scaling, kernels, arrays["landmarks"], dtype, leaf_rows)
    each = range(len(kernels))
    features = FeatureMap(
        columns,
        tuple(None if direct[k] else arrays[f"whitening_{k}"] for k in each),
        tuple(arrays[f"mean_{k}"] for k in each),
        tuple(float(scale) for scale in arrays["scales"]),
    )
    return KernelModel(features, arrays["weights"], arrays["biases"], arrays["kernel_weights"])


def _check_shapes(
    kernels: tuple[Kernel, ...],
    direct: list[bool],
    arrays: dict[str, np.ndarray],
    n_columns: Any,
) -> None:
    d, m, count = len(arrays["shift"]), len(arrays["landmarks"]), len(kernels)
    if d != n_columns or d == 0:
        raise ModelFileError(f"The model is for {n_columns!r} columns, but its shift has {d}.")
    if m == 0:
        raise ModelFileError("The model has no landmarks.")
    wanted: dict[str, tuple[int, ...]] = {
        "shift": (d,),
        "factor": (d,),
        "landmarks": (m, d),
        "scales": (count,),
        "kernel_weights": (count,),
    }
    size = 0
    for k, kernel in enumerate(kernels):
        if direct[k] != is_direct(kernel, d):
            raise ModelFileError(f"Kernel {k} ({kernel}) is stored in a form it cannot have.")
        if getattr(kernel, "gamma", 1.0) is None:
            raise ModelFileError(f"Kernel {k} ({kernel}) has no width from the data.")
        rank = d if direct[k] else arrays[f"whitening_{k}"].shape[-1]
        if not direct[k]:
            wanted[f"whitening_{k}"] = (m, rank)
        wanted[f"mean_{k}"] = (rank,)
        size += rank
    scores = len(arrays["biases"])
    wanted |= {"weights": (scores, size), "biases": (scores,)}
    for name, shape in wanted.items():
        if arrays[name].shape != shape:
            raise ModelFileError(
                f"The array {name!r} has shape {arrays[name].shape} where the other arrays of the "
                f"model ask for {shape}."
            )
        if not np.isfinite(arrays[name]).all():
            raise ModelFileError(f"The array {name!r} holds values that are not finite.")
