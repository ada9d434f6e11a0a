"""Parameters from a file and the command line together."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dmkc.cli.errors import UserError
from dmkc.cli.options import ALIASES, NOT_OPTIONS, parameters
from dmkc.clusterers.estimator import RowClusterer
from dmkc.modelfile import ESTIMATORS


def read_params(path: Path) -> dict[str, Any]:
    """The keys of a YAML, TOML or JSON file."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file.") from None
    try:
        if path.suffix == ".toml":
            found: Any = tomllib.loads(text)
        elif path.suffix in (".yaml", ".yml"):
            found = yaml.safe_load(text)
        elif path.suffix == ".json":
            found = json.loads(text)
        else:
            raise UserError(f"{path} must end in .yaml, .yml, .toml or .json.")
    except (tomllib.TOMLDecodeError, yaml.YAMLError, json.JSONDecodeError) as problem:
        raise UserError(f"{path} cannot be read ({' '.join(str(problem).split())}).") from None
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise UserError(f"{path} must hold names and values, such as n_clusters: 2.")
    return found


def resolve(
    method: str | None, stored: Mapping[str, Any], given: Mapping[str, Any], where: Any
) -> tuple[str, type[RowClusterer], dict[str, Any]]:
    """The method, its estimator and a plain value for every parameter; the command line wins."""
    stored = dict(stored)
    in_file = stored.pop("method", None)
    name = method or in_file or next(iter(ESTIMATORS))
    if name not in ESTIMATORS:
        raise UserError(f"There is no method {name!r}; known are {', '.join(ESTIMATORS)}.")
    cls = ESTIMATORS[name]
    known = {k: p for k, p in parameters(cls).items() if k not in NOT_OPTIONS}
    values = {k: p.default for k, p in known.items()}
    for key, value in stored.items():
        own = _own_name(key, known, where)
        values[own] = known[own].parse(value) if isinstance(value, str) else value
    for key, value in given.items():
        if key not in known:
            raise UserError(f"The method {name!r} has no parameter {key}.")
        values[key] = value
    if "random_state" in values and values["random_state"] is None:
        # A seed that is written down, so that the run can be repeated.
        values["random_state"] = int(np.random.default_rng().integers(2**31))
    return name, cls, {key: _plain(value) for key, value in values.items()}


def params_text(method: str, values: Mapping[str, Any], title: str) -> str:
    """The resolved parameters as a file that `--params` reads."""
    body = yaml.safe_dump({"method": method, **values}, sort_keys=False, allow_unicode=True)
    return f"# {title}\n{body}"


def _own_name(key: str, known: Mapping[str, Any], where: Any) -> str:
    plain = key.replace("-", "_")
    own = {short: long for long, short in ALIASES.items()}.get(plain, plain)
    if own not in known:
        names = [*known, *ALIASES.values(), "method"]
        close = difflib.get_close_matches(plain, names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else f" Known are {', '.join(known)}."
        raise UserError(f"{where} has an unknown key {key!r}.{hint}")
    return own


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
