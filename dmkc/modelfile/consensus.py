"""Models that join other models: members, and the plans that several of them may share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.clusterers.kmeans.ensemble import ClusterEmbedding, ConsensusModel, MemberClusters
from dmkc.kernels import KernelPlan
from dmkc.modelfile.kinds import ModelKind, PlanKind, check_arrays, named_kind
from dmkc.modelfile.plans import StoredPlan, build_plan, plan_arrays, plan_settings, read_plan
from dmkc.modelfile.values import Arrays, ModelFileError

OWN = ("values", "offset", "centres", "shares")
MOST_MEMBERS = 10_000


@dataclass(frozen=True)
class StoredMember:
    """What a file says of one member beside its arrays."""

    kind: ModelKind
    plan: int | None
    """The number of its plan among those of the file; None where it stands on no plan."""
    settings: Any


@dataclass(frozen=True)
class StoredConsensus:
    """What a file says of joined models beside their arrays."""

    plans: tuple[StoredPlan, ...]
    members: tuple[StoredMember, ...]
    least_agreement: float


class Consensus(ModelKind):
    """Joint clusters of members, each of which is of another kind."""

    name = "consensus"
    model = ConsensusModel

    def __init__(self, kinds: tuple[ModelKind, ...]) -> None:
        self._kinds = kinds

    def settings(self, model: ConsensusModel) -> dict[str, Any]:
        members = model.embedding.plan.models
        plans = self._plans(members)
        places = {id(plan): number for number, plan in enumerate(plans)}
        described = []
        for member in members:
            kind = self._kind_of(member)
            if isinstance(kind, PlanKind):
                own = {"plan": places[id(kind.plan_of(member))], **kind.own_settings(member)}
            else:
                own = kind.settings(member)
            described.append({"kind": kind.name, **own})
        return {
            "plans": [plan_settings(plan) for plan in plans],
            "members": described,
            "least_agreement": float(model.least_agreement),
        }

    def arrays(self, model: ConsensusModel) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for number, plan in enumerate(self._plans(model.embedding.plan.models)):
            found |= _prefixed(_plan_name(number), plan_arrays(plan))
        for number, member in enumerate(model.embedding.plan.models):
            kind = self._kind_of(member)
            own = kind.own_arrays(member) if isinstance(kind, PlanKind) else kind.arrays(member)
            found |= _prefixed(_member_name(number), dict(own))
        embedding = model.embedding
        return found | {
            "values": embedding.values,
            "offset": embedding.offset,
            "centres": model.centres,
            "shares": model.shares,
        }

    def read(self, stored: dict[str, Any]) -> StoredConsensus:
        plans = tuple(read_plan(plan) for plan in _dictionaries(stored, "plans"))
        members = tuple(self._member(item, plans) for item in _dictionaries(stored, "members"))
        least = stored.get("least_agreement")
        if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
            raise ModelFileError(f"The least agreement must lie between 0 and 1, not {least!r}.")
        if not members:
            raise ModelFileError("The file does not list the members of the model.")
        return StoredConsensus(plans, members, float(least))

    def array_names(self, settings: StoredConsensus) -> list[str]:
        names = [
            f"{_plan_name(number)}{name}"
            for number, plan in enumerate(settings.plans)
            for name in plan.array_names
        ]
        for number, member in enumerate(settings.members):
            names += [f"{_member_name(number)}{name}" for name in _names_of(member)]
        return [*names, *OWN]

    def build(self, settings: StoredConsensus, arrays: Arrays, n_columns: Any) -> ConsensusModel:
        plans = []
        for number, stored in enumerate(settings.plans):
            wanted = any(
                member.plan == number and _needs_diagonals(member) for member in settings.members
            )
            inside = _picked(_plan_name(number), stored.array_names, arrays)
            plans.append(build_plan(stored, inside, n_columns, diagonals=wanted))
        models = []
        for number, member in enumerate(settings.members):
            inside = _picked(_member_name(number), _names_of(member), arrays)
            models.append(_built(member, plans, inside, n_columns))
        members = MemberClusters(tuple(models))
        if arrays["centres"].ndim != 2 or not arrays["centres"].size:
            raise ModelFileError("The model has no clusters.")
        (k, dimensions), count = arrays["centres"].shape, members.n_clusters
        check_arrays(
            arrays,
            {
                "values": (count, dimensions),
                "offset": (dimensions,),
                "centres": (k, dimensions),
                "shares": (count, k),
            },
        )
        embedding = ClusterEmbedding(members, arrays["values"], arrays["offset"])
        return ConsensusModel(
            embedding, arrays["centres"], arrays["shares"], settings.least_agreement
        )

    def _kind_of(self, member: Any) -> ModelKind:
        return next(kind for kind in self._kinds if kind.model is type(member))

    def _plans(self, members: Iterable[Any]) -> list[KernelPlan]:
        """The plans of all members, each of them once."""
        kinds = ((self._kind_of(member), member) for member in members)
        plans = [kind.plan_of(member) for kind, member in kinds if isinstance(kind, PlanKind)]
        return list({id(plan): plan for plan in plans}.values())

    def _member(self, stored: dict[str, Any], plans: tuple[StoredPlan, ...]) -> StoredMember:
        kind = named_kind(stored.get("kind"), self._kinds)
        if not isinstance(kind, PlanKind):
            return StoredMember(kind, None, kind.read(stored))
        plan = stored.get("plan")
        if not isinstance(plan, int) or isinstance(plan, bool) or not 0 <= plan < len(plans):
            raise ModelFileError(f"A member has the plan {plan!r}, which the file does not have.")
        return StoredMember(kind, plan, kind.read_own(stored, len(plans[plan].kernels)))


def _names_of(member: StoredMember) -> list[str]:
    """The arrays that are the member's own."""
    kind, settings = member.kind, member.settings
    return kind.own_names(settings) if isinstance(kind, PlanKind) else kind.array_names(settings)


def _needs_diagonals(member: StoredMember) -> bool:
    return isinstance(member.kind, PlanKind) and member.kind.needs_diagonals(member.settings)


def _built(member: StoredMember, plans: list[KernelPlan], arrays: Arrays, n_columns: Any) -> Any:
    """A member; those that shared a plan share it again."""
    if isinstance(member.kind, PlanKind) and member.plan is not None:
        return member.kind.build_on(plans[member.plan], member.settings, arrays)
    return member.kind.build(member.settings, arrays, n_columns)


def _dictionaries(stored: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = stored.get(name)
    fine = isinstance(found, list) and len(found) <= MOST_MEMBERS
    if not isinstance(found, list) or not fine or not all(isinstance(x, dict) for x in found):
        raise ModelFileError(f"The file does not list the {name} of the model.")
    return found


def _prefixed(start: str, arrays: dict[str, Any]) -> dict[str, np.ndarray]:
    return {f"{start}{name}": array for name, array in arrays.items()}


def _picked(start: str, names: Iterable[str], arrays: Arrays) -> Arrays:
    return {name: arrays[f"{start}{name}"] for name in names}


def _plan_name(number: int) -> str:
    return f"plan_{number}_"


def _member_name(number: int) -> str:
    return f"member_{number}_"
