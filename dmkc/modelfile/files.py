"""Model files: a Zarr group whose attributes describe the model and whose arrays are the model.

A digest over description and arrays is written with them, so that a file which is truncated or
changed is never taken for a model.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import platform
import re
import uuid
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from sklearn.utils.validation import check_is_fitted

from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.documents import read_bytes
from dmkc.modelfile.contents import (
    check_description,
    check_fitted,
    check_parameters,
    check_whole,
)
from dmkc.modelfile.folder import (
    FREE_BYTES,
    METADATA,
    MOST_DESCRIPTION,
    check_chunks,
    check_folder,
)
from dmkc.modelfile.models import kind_in, kind_of
from dmkc.modelfile.values import (
    ModelFileError,
    NotStorable,
    decode,
    encode,
    encode_parameter,
    refuse_code,
)
from dmkc.showing import one_line
from dmkc.version import __version__
from dmkc.writing import staged

FORMAT = "dmkc-model"
VERSION = 3
"""Files whose arrays lie in a folder named by `INSIDE`; others have version 2."""
INSIDE = "inside"
KEY = "dmkc"
CODECS = (["bytes"], ["bytes", "zstd"])
"""How a chunk may be stored: as it is, or packed once."""
MOST_NUMBERS = 1 << 28
"""Numbers of all arrays, at most: 2 GiB, far beyond any model."""
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "dask", "zarr")


def estimator_class(name: Any) -> type[RowClusterer]:
    """The registered estimator of that class name."""
    for known in ESTIMATORS.values():
        if known.__name__ == name:
            return known
    names = ", ".join(known.__name__ for known in ESTIMATORS.values())
    raise ModelFileError(
        f"The file holds a model of {name!r}, but known are only {names}: install the package "
        "that has it, or call dmkc.register_estimator."
    )


def save(model: RowClusterer, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write a fitted model to a local path; see `dmkc.load`."""
    check_is_fitted(model)
    if "://" in os.fspath(path):
        raise ModelFileError(f"Models are saved to local folders, and {path!r} is an address.")
    target = Path(os.path.abspath(os.path.expanduser(path)))
    if target.exists() or target.is_symlink():
        if not overwrite:
            raise FileExistsError(f"{target} exists; pass overwrite=True to replace it.")
        if target.is_symlink() or not is_model_file(target):
            raise ModelFileError(f"{target} is not a model file, so it is not overwritten.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder {target.parent} does not exist; create it first.")
    described = _describe(model)
    arrays = {
        name: np.asarray(value, dtype=np.float64)
        for name, value in kind_of(model.model_).arrays(model.model_).items()
    }
    if overwrite:  # arrays in a folder of their own can take the place of others in one step
        described |= {"version": VERSION, INSIDE: f"arrays-{uuid.uuid4().hex}"}
    described["order"] = {name: _order(array) for name, array in arrays.items()}
    described["shapes"] = {name: list(array.shape) for name, array in arrays.items()}
    described["sha256"] = _digest(described, arrays)
    inside = described.get(INSIDE)
    with staged(target, replace=overwrite, inside=inside) as folder:
        group = zarr.create_group(store=folder, zarr_format=3, attributes={KEY: described})
        group = group if inside is None else group.create_group(inside)
        for name, array in arrays.items():
            # What is large is written as it is, since files that unpack to much are refused.
            large = array.nbytes > FREE_BYTES
            group.create_array(
                name,
                data=np.ascontiguousarray(array),
                compressors=None if large else "auto",
                config={"write_empty_chunks": large},
            )


def load(path: str | os.PathLike[str]) -> RowClusterer:
    """Read a model that `save` has written, from a local path or a URL that fsspec knows.

    The model predicts the same bits as the one saved.  Nothing in the file is executed.  It has no
    `labels_`, which belong to the rows of the fit and not to the model; `predict` gives the labels
    of any rows.  `client`, and parameters that were arrays, have their default values.

    Examples
    --------
    >>> import tempfile
    >>> import dmkc
    >>> from dmkc.datasets import make_blobs
    >>> X, y = make_blobs(200, centers=2, seed=0)
    >>> model = dmkc.KMeans(2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/blobs.zarr")
    ...     same = dmkc.load(f"{folder}/blobs.zarr")
    >>> bool((same.predict(X) == model.labels_).all())
    True
    """
    described, group, where = _open(path)
    while True:
        try:
            return _rebuild(described, group, where if isinstance(where, Path) else None)
        except ModelFileError as problem:
            before = described.get("sha256")
            described, group, where = _open(path)
            if described.get("sha256") == before:  # else it has been replaced meanwhile
                raise ModelFileError(
                    f"The model file {where} cannot be read: {one_line(problem)}"
                ) from None


def read_description(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says of itself, without its arrays."""
    return _open(path)[0]


def is_model_file(path: Path) -> bool:
    """Whether a local folder says that it is a model file, whole or not."""
    try:
        stored = json.loads(read_bytes(path / METADATA, MOST_DESCRIPTION))
        return stored["attributes"][KEY]["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _describe(model: RowClusterer) -> dict[str, Any]:
    cls = type(model)
    if estimator_class(cls.__name__) is not cls:
        raise ModelFileError(f"Models of the class {cls.__qualname__} cannot be saved.")
    kind = kind_of(model.model_)
    left = ("model_", *model._per_row)
    parameters, fitted, left_out = {}, {}, {}
    for name, value in model.get_params(deep=False).items():
        if name == "client":
            continue
        try:
            if name == "kernels":
                _refuse_functions(value)
            parameters[name] = encode_parameter(value)
        except NotStorable as problem:
            left_out[name] = str(problem)
    for name, value in vars(model).items():
        if not name.endswith("_") or name.startswith("_") or name in left:
            continue
        try:
            fitted[name] = encode(value)
        except NotStorable as problem:
            left_out[name] = str(problem)
    return {
        "format": FORMAT,
        "version": 2,
        "estimator": cls.__name__,
        "parameters": parameters,
        "fitted": fitted,
        "left_out": left_out,
        "model": {"kind": kind.name, **kind.settings(model.model_)},
        "libraries": _versions(),
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _refuse_functions(kernels: Any) -> None:
    for item in kernels if isinstance(kernels, list | tuple) else [kernels]:
        if callable(item):
            refuse_code(item)


def _rebuild(described: dict[str, Any], group: Any, folder: Path | None) -> RowClusterer:
    check_description(described)
    cls = estimator_class(described.get("estimator"))
    parameters, fitted = decode(described.get("parameters")), decode(described.get("fitted"))
    if not isinstance(parameters, dict) or not isinstance(fitted, dict):
        raise ModelFileError("its parameters or fitted values are missing.")
    stored: Any = described.get("model")
    kind = kind_in(stored)
    settings = kind.read(stored)
    orders, shapes = (_mapping(described, name) for name in ("order", "shapes"))
    names = kind.array_names(settings)
    group = _where_arrays_are(described, group)
    if folder is not None:
        folder = folder / described.get(INSIDE, "")
    for name in names:
        if described["version"] > 1 and name not in shapes:
            raise ModelFileError(f"the array {name!r} is missing.")
    there = {name: _checked_array(group, name, shapes.get(name), folder) for name in names}
    if sum(array.size for array in there.values()) > MOST_NUMBERS:
        raise ModelFileError(f"its arrays are larger than any model's (beyond {MOST_NUMBERS}).")
    arrays = {name: _read(name, array, orders.get(name)) for name, array in there.items()}
    if described.get("sha256") != _digest(described, arrays):
        raise ModelFileError("its checksum does not fit, so it has been changed or is incomplete.")
    check_parameters(cls, parameters)
    check_fitted(cls, fitted)
    model = cls(**parameters)
    for name, value in fitted.items():
        if not name.endswith("_") or name.startswith("_") or hasattr(cls, name):
            raise ModelFileError(f"{name!r} is not the name of a fitted value.")
        setattr(model, name, value)
    model.model_ = kind.build(settings, arrays, fitted["n_features_in_"])
    check_whole(model)
    return model


def _where_arrays_are(described: dict[str, Any], group: Any) -> Any:
    """The group itself, or the one inside that its description names."""
    inside = described.get(INSIDE)
    if inside is None:
        return group
    if not isinstance(inside, str) or not re.fullmatch("arrays-[0-9a-f]{32}", inside):
        raise ModelFileError("what it says of the place of its arrays is malformed.")
    try:
        return group[inside]
    except Exception as problem:
        raise ModelFileError(f"its arrays are missing ({problem}).") from None


def _mapping(described: dict[str, Any], name: str) -> dict[str, Any]:
    found = described.get(name, {})
    if not isinstance(found, dict):
        raise ModelFileError(f"what it says of the {name} of its arrays is malformed.")
    return found


def _checked_array(group: Any, name: str, shape: Any, folder: Path | None) -> Any:
    """One array, of which no chunk has been read, once it is known to be harmless."""
    try:
        array: Any = group[name]
    except KeyError:
        raise ModelFileError(f"the array {name!r} is missing.") from None
    except Exception as problem:
        raise ModelFileError(f"the array {name!r} is damaged ({problem}).") from None
    if not isinstance(array, zarr.Array) or array.dtype != np.float64:
        raise ModelFileError(f"{name!r} is not an array of float64.")
    stored: Any = array.metadata
    used = [codec.to_dict().get("name") for codec in stored.codecs]
    place = "/".join(["c", *("0" * array.ndim)])
    if used not in CODECS or stored.encode_chunk_key((0,) * array.ndim) != place:
        raise ModelFileError(f"the array {name!r} is stored in an unknown way.")
    if shape is not None and list(array.shape) != shape:
        raise ModelFileError(f"the array {name!r} has shape {list(array.shape)}, not {shape}.")
    if array.size > MOST_NUMBERS:
        raise ModelFileError(f"the array {name!r} is larger than any model's ({array.size}).")
    pairs = zip(array.chunks, array.shape, strict=True)
    if any(chunk > max(size, 1) for chunk, size in pairs):
        raise ModelFileError(f"the array {name!r} has chunks larger than itself.")
    if folder is not None:
        chunk_bytes = 8 * math.prod(array.chunks)
        check_chunks(folder / name, 8 * array.size, chunk_bytes, packed="zstd" in used)
    return array


def _read(name: str, array: Any, order: Any) -> np.ndarray:
    """The values of an array."""
    try:
        values = np.asarray(array[...], dtype=np.float64)
    except Exception as problem:
        raise ModelFileError(f"the array {name!r} is damaged ({problem}).") from None
    # The order in memory decides in which order products are summed, and so the last bits.
    return np.asarray(values, order="F" if order == "F" else "C")


def _open(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Any, Path | str]:
    text = os.fspath(path).removeprefix("file://")
    remote = "://" in text
    place: Any = text if remote else Path(os.path.abspath(os.path.expanduser(text)))
    if not remote and not place.exists():
        raise FileNotFoundError(f"There is no model file at {place}.")
    if not remote:
        _check_place(place)
    try:
        # Older Zarr formats know object arrays, which are pickles: they are not even looked at.
        group = zarr.open_group(store=place, mode="r", zarr_format=3, use_consolidated=False)
        described = group.attrs.asdict().get(KEY)
    except ImportError:
        raise
    except FileNotFoundError as problem:
        if remote:
            raise FileNotFoundError(f"There is no model file at {place}.") from problem
        raise ModelFileError(f"{place} is not a model file.") from problem
    except Exception as problem:
        raise ModelFileError(f"{place} is not a model file.") from problem
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise ModelFileError(f"{place} is a Zarr group but not a model file.")
    number = described.get("version")
    if not isinstance(number, int) or number < 1:
        raise ModelFileError(f"The model file {place} has the unknown version {number!r}.")
    if number > VERSION:
        raise ModelFileError(
            f"The model file {place} has format version {number}, and this dmkc reads versions up "
            f"to {VERSION}; read it with a newer dmkc."
        )
    return described, group, place


def _check_place(place: Path) -> None:
    if not place.is_dir():
        raise ModelFileError(f"{place} is not a model file.")
    try:
        check_folder(place)
    except ModelFileError as problem:
        raise ModelFileError(f"{place} is not a model file: {problem}") from None


def _order(array: np.ndarray) -> str:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def _digest(described: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    content = {name: value for name, value in described.items() if name != "sha256"}
    digest = hashlib.sha256(
        json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=True).encode()
    )
    for name in sorted(arrays):
        digest.update(f"\n{name} {arrays[name].shape}\n".encode())
        plain = np.ascontiguousarray(arrays[name], dtype="<f8")
        digest.update(plain.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "dmkc": __version__}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
