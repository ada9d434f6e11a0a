"""Model files that are damaged or forged: the labels of the whole file, or one sentence.

A forged file has a checksum that fits what it says, so that checks of values are reached too; it
may be another model, but nothing that crashes, hangs or fills the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import dmkc
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.datasets import make_blobs
from dmkc.errors import UserError
from dmkc.modelfile import ModelFileError, files

SECONDS = 30.0
GROWTH = 256
SMALL = {"rank": 20, "n_members": 2, "anchors": 40}
DAMAGES = ("bytes flipped", "cut off", "made longer", "emptied", "removed", "exchanged", "filled")
REPLACED = ("pipe", "link to a device", "link outside", "link to itself", "folder")
FORGED = ("value of the description", "value of an array's metadata", "numbers of an array")
CHANGES = {
    "damaged": DAMAGES,
    "replaced": REPLACED,
    "forged": FORGED,
}
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2,
    10**9,
    10**18,
    10**400,
    -0.5,
    1e300,
    float("nan"),
    float("inf"),
    "",
    "nonsense",
    "../../etc/passwd",
    "x" * 100_000,
    [],
    {},
    [[]],
    [1, "a", None],
    {"kind": "tuple", "items": [1]},
    {"kind": "array", "dtype": "object", "shape": [1], "values": [{}]},
    {"kind": ["array"]},
)


def draw(rng: Any, number: int) -> dict[str, Any]:
    """A file of a method and what is done to it."""
    methods = list(ESTIMATORS)
    group = list(CHANGES)[rng.choice(3, p=[0.4, 0.1, 0.5])]
    changes = CHANGES[group]
    return {
        "method": methods[number % len(methods)],
        "group": group,
        "change": changes[rng.integers(len(changes))],
        "seed": int(rng.integers(2**31)),
    }


@lru_cache
def _stored(method: str, folder: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """A saved model, its rows and labels."""
    X = make_blobs(80, 5, 2, seed=1)[0]
    cls = ESTIMATORS[method]
    small = {name: value for name, value in SMALL.items() if name in cls.parameters()}
    path = folder / f"whole-{method}"
    model = cls(random_state=0, **small).fit(X)
    model.save(path, overwrite=path.exists())
    return path, X, np.asarray(model.labels_)


def play(plan: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Change a file, load it and label rows."""
    if plan["method"] not in ESTIMATORS:
        return {"outcome": "skipped", "said": "there is no such estimator"}
    whole, X, labels = _stored(plan["method"], folder)
    path = folder / "model.zarr"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(whole, path)
    rng = np.random.default_rng(plan["seed"])
    what = change(path, plan["change"], rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = np.asarray(dmkc.load(path).predict(X))
        except ModelFileError as refusal:
            return _sentence(str(refusal), what)
        except UserError as refusal:  # of numbers that nobody could compute with
            if plan["group"] == "forged":
                return _sentence(str(refusal), what)
            return {"outcome": "leak", "said": f"{what}: {refusal}"}
        except Exception as failure:
            return {"outcome": "leak", "said": f"{what}: {type(failure).__name__}: {failure}"[:500]}
    if found.shape != labels.shape or found.dtype.kind != "i":
        return {"outcome": "wrong", "said": f"{what}: labels are {found.dtype} {found.shape}"}
    if plan["group"] != "forged" and (found != labels).any():
        return {"outcome": "wrong", "said": f"{what}: other labels than before"}
    return {"outcome": "done", "said": what}


def _sentence(text: str, what: str) -> dict[str, Any]:
    fine = "\n" not in text and text.endswith(".") and len(text) < 3000
    return {"outcome": "refused" if fine else "unclear", "said": f"{what}: {text}"[:500]}


def change(path: Path, kind: str, rng: Any) -> str:
    """Do something to a model file; what that was."""
    if kind == "value of the description":
        return _describe(path, rng)
    if kind == "numbers of an array":
        return _numbers(path, rng)
    if kind == "value of an array's metadata":
        metas = sorted(path.rglob("*/zarr.json"))
        meta = metas[rng.integers(len(metas))]
        stored = json.loads(meta.read_text())
        text = f"{meta.relative_to(path)} {alter(stored, rng)}"
        meta.write_text(json.dumps(stored))
        return text
    there = sorted(each for each in path.rglob("*") if each.is_file())
    one, other = (there[i] for i in rng.integers(len(there), size=2))
    damage(one, other, kind, rng)
    return f"{one.relative_to(path)} {kind}"


def damage(one: Path, other: Path, kind: str, rng: Any) -> None:
    """Do something to a file."""
    content = bytearray(one.read_bytes())
    if kind == "exchanged":
        theirs = other.read_bytes()
        other.write_bytes(content)
        one.write_bytes(theirs)
        return
    if kind in REPLACED or kind == "removed":
        one.unlink()
        if kind == "pipe":
            os.mkfifo(one)
        elif kind == "folder":
            one.mkdir()
        elif kind != "removed":
            outside = one.parents[1] / "outside"
            outside.write_bytes(content)
            one.symlink_to(
                {"link to a device": "/dev/zero", "link to itself": one}.get(kind, outside)
            )
        return
    if kind == "bytes flipped":
        for place in rng.integers(len(content), size=int(rng.integers(1, 4))):
            content[place] ^= 1 << int(rng.integers(8))
    content = {
        "cut off": content[: int(rng.integers(len(content)))],
        "made longer": content + rng.bytes(50),
        "emptied": b"",
        "filled": rng.bytes(len(content)),
    }.get(kind, content)
    one.write_bytes(content)


def _describe(path: Path, rng: Any) -> str:
    """Change one value of the description, with a checksum that fits."""
    stored = json.loads((path / "zarr.json").read_text())
    described = stored["attributes"]["dmkc"]
    text = alter(described, rng)
    with contextlib.suppress(Exception):  # what cannot be digested is refused by its old checksum
        described["sha256"] = files._digest(described, _arrays(path))
    (path / "zarr.json").write_text(json.dumps(stored))
    return text


def _numbers(path: Path, rng: Any) -> str:
    """Change numbers of one array, with a checksum that fits."""
    stored = json.loads((path / "zarr.json").read_text())
    described = stored["attributes"]["dmkc"]
    arrays = _arrays(path)
    name = sorted(arrays)[rng.integers(len(arrays))]
    value = (0.0, -1.0, 1e300, -1e300, 1e-310, np.nan, np.inf, 1e9)[rng.integers(8)]
    size = arrays[name].size
    if size:
        places = rng.integers(size, size=1 if rng.random() < 0.5 else size)
        arrays[name].reshape(-1)[places] = value
        group = _group(path)
        array: Any = zarr.open_array(store=group, path=name, mode="r+")
        array[...] = arrays[name]
    described["sha256"] = files._digest(described, arrays)
    (path / "zarr.json").write_text(json.dumps(stored))
    return f"{name} holds {value}"


def _group(path: Path) -> Path:
    inside = json.loads((path / "zarr.json").read_text())["attributes"]["dmkc"].get("inside", "")
    found = sorted(path.glob("arrays-*"))
    return path / inside if inside or not found else found[0]


def _arrays(path: Path) -> dict[str, np.ndarray]:
    group = zarr.open_group(store=_group(path), mode="r")
    return {name: np.asarray(array[...]) for name, array in group.arrays()}


def alter(stored: Any, rng: Any) -> str:
    """Replace, remove or add one value somewhere in a document."""
    where, here = [], stored
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return f"{where} was empty"
        key = keys[rng.integers(len(keys))]
        where.append(str(key))
        deeper = isinstance(here[key], dict | list) and here[key] and rng.random() < 0.85
        if not deeper:
            break
        here = here[key]
    if rng.random() < 0.15 and isinstance(here, dict):
        del here[key]
        return f"{'.'.join(where)} removed"
    value = ODD[rng.integers(len(ODD))]
    if isinstance(here[key], int | float) and not isinstance(here[key], bool):
        if rng.random() < 0.5:
            value = here[key] * (-1, 2, 1000, 0.5)[rng.integers(4)]
    here[key] = value
    return f"{'.'.join(where)} = {str(value)[:60]}"
