"""All kinds of models that files may hold."""

from __future__ import annotations

from typing import Any

from dmkc.modelfile.arrays import KernelScores
from dmkc.modelfile.centroids import Centres
from dmkc.modelfile.errors import ModelFileError
from dmkc.modelfile.kind import ModelKind
from dmkc.modelfile.partitions import Partitions

KINDS: tuple[ModelKind, ...] = (KernelScores(), Centres(), Partitions())
"""The first is what files of the first release hold without saying so."""


def kind_of(model: Any) -> ModelKind:
    """The kind of a model in memory."""
    return next(kind for kind in KINDS if kind.model is type(model))


def kind_in(stored: Any) -> ModelKind:
    """The kind that a file's description names."""
    if not isinstance(stored, dict):
        raise ModelFileError("The description of the model is missing from the file.")
    name = stored.get("kind", KINDS[0].name)
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise ModelFileError(f"The file holds a model of the unknown kind {name!r}.")
