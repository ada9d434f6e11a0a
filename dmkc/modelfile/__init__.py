"""Models on disk."""

from dmkc.modelfile.errors import ModelFileError
from dmkc.modelfile.files import is_model_file, load, read_description, save
from dmkc.modelfile.registry import ESTIMATORS

__all__ = [
    "ESTIMATORS",
    "ModelFileError",
    "is_model_file",
    "load",
    "read_description",
    "save",
]
