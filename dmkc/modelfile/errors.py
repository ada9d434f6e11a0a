"""What can be wrong with a model file."""

from dmkc.errors import UserError


class ModelFileError(UserError):
    """A model cannot be stored, or a file is not a whole model that this version can read."""
