"""Data sets by name: a folder of `.npz` files, and the list of all that can be had."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np

from dmkc.errors import UserError

from .embedded import EMBEDDED, Dataset
from .generators import RECIPES
from .recipes import Array

VARIABLE = "DMKC_DATA_DIR"


def load(name: str, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Read `<name>.npz` from `folder`, or from the folder named by DMKC_DATA_DIR.

    The file holds X and y, and may hold classes (the names of the classes) and split (one value
    per row). Without a `folder`, a bundled data set of that name stands in for an absent file.

    Examples
    --------
    >>> from dmkc.datasets import load
    >>> load("wdbc").X.shape
    (569, 30)
    """
    if not name or Path(name).name != name:
        raise UserError(f"{name!r} is not the name of a data set; give it without a path.")
    place = _folder(folder)
    path = None if place is None else place / f"{name}.npz"
    if path is not None and path.is_file():
        return _read(name, path)
    if folder is None and name in EMBEDDED:
        return EMBEDDED[name]()
    if name in RECIPES:
        hint = f"call make_{name} to generate rows of that kind."
    elif path is None:
        hint = f"set the environment variable {VARIABLE} to the folder that holds {name}.npz."
    else:
        hint = f"put the file there or name another folder (found: {_listing(path.parent)})."
    where = f"{VARIABLE} is not set" if path is None else f"{path} does not exist"
    raise FileNotFoundError(f"The data set {name!r} was not found because {where}; {hint}")


def available(folder: str | os.PathLike[str] | None = None) -> dict[str, tuple[str, ...]]:
    """Names of the data sets: generated, bundled ("embedded") and in the folder.

    Examples
    --------
    >>> from dmkc.datasets import available
    >>> available()["embedded"]
    ('digits', 'wdbc')
    """
    place = _folder(folder)
    found = () if place is None else tuple(sorted(path.stem for path in place.glob("*.npz")))
    return {"generators": tuple(RECIPES), "embedded": tuple(EMBEDDED), "folder": found}


def _folder(folder: str | os.PathLike[str] | None) -> Path | None:
    place = folder if folder is not None else os.environ.get(VARIABLE)
    return Path(place).expanduser() if place else None


def _listing(folder: Path) -> str:
    return ", ".join(sorted(path.stem for path in folder.glob("*.npz"))) or "nothing"


def _read(name: str, path: Path) -> Dataset:
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays: dict[str, Array] = {key: stored[key] for key in stored.files}
    except (ValueError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as problem:
        raise UserError(
            f"{path} cannot be read as plain arrays ({problem}); write it again with "
            "numpy.savez and without object arrays."
        ) from problem
    for key in ("X", "y"):
        if key not in arrays:
            raise UserError(
                f"{path} has no array {key} (found: {', '.join(arrays) or 'nothing'}); "
                "store the features as X and the classes as y."
            )
    split = arrays.get("split")
    if split is not None and len(split) != len(arrays["X"]):
        raise UserError(f"split in {path} does not fit X; store one value of split per row.")
    classes = arrays.get("classes")
    width = arrays["X"].shape[1] if arrays["X"].ndim == 2 else 0
    return Dataset(
        name=name,
        X=arrays["X"],
        y=arrays["y"],
        columns=tuple(f"x{column}" for column in range(width)),
        source=str(path),
        classes=None if classes is None else tuple(str(value) for value in classes.tolist()),
        split=split,
    )
