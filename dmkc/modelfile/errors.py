"""What can be wrong with a model file."""


class ModelFileError(ValueError):
    """A model cannot be stored, or a file is not a whole model that this version can read."""
