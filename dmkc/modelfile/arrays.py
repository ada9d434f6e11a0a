"""Models of scores on kernel features as named arrays and a few settings, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dmkc.clusterers.model import KernelModel
from dmkc.kernels import FeatureMap
from dmkc.kernels.base import StoredMap, map_of
from dmkc.modelfile.errors import ModelFileError
from dmkc.modelfile.kind import Arrays, ModelKind, check_arrays
from dmkc.modelfile.plans import StoredPlan, build_plan, plan_arrays, plan_settings, read_plan

DECISIONS = ("none", "sign", "largest", "nearest")


@dataclass(frozen=True)
class ScoreSettings:
    """What a file says of a model of scores beside its arrays."""

    plan: StoredPlan
    mapped: list[bool]
    """Which kernels have an array that maps stored values to features."""
    decision: str
    """How scores become labels."""


class KernelScores(ModelKind):
    """Scores on kernel features."""

    name = "kernel-scores"
    model = KernelModel

    def settings(self, model: KernelModel) -> dict[str, Any]:
        return plan_settings(model.features.plan) | {
            "direct": [stored.array is None for stored in model.features.maps],
            "decision": model.decision,
        }

    def arrays(self, model: KernelModel) -> dict[str, Any]:
        features = model.features
        found: dict[str, Any] = plan_arrays(features.plan) | {"scales": features.scale}
        for k, (mean, stored) in enumerate(zip(features.mean, features.maps, strict=True)):
            found[f"mean_{k}"] = mean
            if stored.array is not None:
                found[f"whitening_{k}"] = stored.array
        return found | {
            "weights": model.weights,
            "biases": model.biases,
            "kernel_weights": model.kernel_weights,
        }

    def read(self, stored: dict[str, Any]) -> ScoreSettings:
        plan, direct = read_plan(stored), stored.get("direct")
        if not isinstance(direct, list) or len(direct) != len(plan.kernels):
            raise ModelFileError("The file does not say which kernels use the columns directly.")
        if not all(isinstance(plain, bool) for plain in direct):
            raise ModelFileError("The file does not say which kernels use the columns directly.")
        decision = stored.get("decision", "largest")
        if decision not in DECISIONS:
            raise ModelFileError(f"Scores cannot be decided by {decision!r}.")
        return ScoreSettings(plan, [not plain for plain in direct], decision)

    def array_names(self, settings: ScoreSettings) -> list[str]:
        each = [f"mean_{k}" for k in range(len(settings.mapped))]
        maps = [f"whitening_{k}" for k, mapped in enumerate(settings.mapped) if mapped]
        own = ["scales", "weights", "biases", "kernel_weights"]
        return [*settings.plan.array_names, *each, *maps, *own]

    def build(self, settings: ScoreSettings, arrays: Arrays, n_columns: Any) -> KernelModel:
        plan = build_plan(settings.plan, arrays, n_columns)
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
