"""Models on disk."""

from dmkc.clusterers.registry import ESTIMATORS
from dmkc.modelfile.files import is_model_file, load, read_description, save
from dmkc.modelfile.values import ModelFileError

__all__ = [
    "ESTIMATORS",
    "ModelFileError",
    "is_model_file",
    "load",
    "read_description",
    "save",
]
