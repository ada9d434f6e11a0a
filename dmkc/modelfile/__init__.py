"""Models on disk."""

from dmkc.clusterers.registry import ESTIMATORS
from dmkc.modelfile.errors import ModelFileError
from dmkc.modelfile.files import is_model_file, load, read_description, save

__all__ = [
    "ESTIMATORS",
    "ModelFileError",
    "is_model_file",
    "load",
    "read_description",
    "save",
]
