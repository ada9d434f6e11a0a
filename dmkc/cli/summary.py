"""What a fit has come to, as the values of metrics.json and as lines for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dmkc.cli.common import kernel_text, print_pairs
from dmkc.cli.labels import cluster_sizes
from dmkc.clusterers.estimator import Facts, RowClusterer


def metrics_of(model: RowClusterer, folder: Path, n: int, seconds: float) -> dict[str, Any]:
    """What metrics.json says of a fit and its labels, which are written."""
    sizes, noise = cluster_sizes(folder / "labels.zarr")
    found = {
        "rows": n,
        "columns": int(model.n_features_in_),
        "clusters": model.n_clusters_,
        "cluster_sizes": sizes,
        **({"noise_rows": noise} if noise else {}),
        "seconds": round(seconds, 3),
    }
    found |= fitted_values(model)
    choice = model._choice()
    if choice is not None and choice.confidence is not None:
        found["confidence"] = round(choice.confidence, 3)
        found["candidates"] = len(choice.records)
    elif choice is not None:
        found["clusters_tried"] = {
            str(tried["n_clusters"]): round(tried["score"], 3) for tried in choice.records
        }
    if model._has_kernels:
        found["kernel_weights"] = weights_by_kernel(model)
    return found


def fitted_values(model: RowClusterer) -> dict[str, Any]:
    """What a model says of its fit, as values that JSON has."""
    return {name: np.asarray(value).tolist() for name, value in model._metrics().items()}


def weights_by_kernel(model: Any) -> dict[str, float]:
    """The weight of every kernel of a model, numbered, since a bank may hold a kernel twice."""
    weights = zip(model.kernels_, np.asarray(model.kernel_weights_).tolist(), strict=True)
    return {
        f"{number}: {kernel_text(kernel)}": weight
        for number, (kernel, weight) in enumerate(weights, start=1)
    }


def show(found: dict[str, Any], out: Path) -> None:
    """Print the same for people."""
    pairs: Facts = []
    for name, value in found.items():
        label = name.replace("_", " ")
        if isinstance(value, dict):
            pairs += [(label, ""), *((f"  {key}", item) for key, item in value.items())]
        elif isinstance(value, list):
            pairs.append((label, ", ".join(map(str, value))))
        else:
            pairs.append((label, value))
    print_pairs([*pairs, ("results", out)])
