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
from dmkc.cli.method_help import method_class
from dmkc.cli.options import ALIASES, methods_with, parameters
from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.registry import ESTIMATORS


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
    method: str | None, stored: Mapping[str, Any], given: Mapping[str, str], where: Any
) -> tuple[str, type[RowClusterer], dict[str, Any]]:
    """The method, its estimator and a plain value for every parameter; the command line wins."""
    stored = dict(stored)
    in_file = stored.pop("method", None)
    name = method or in_file or next(iter(ESTIMATORS))
    cls = method_class(name)
    known = parameters(cls)
    values = {k: p.default for k, p in known.items()}
    for key, value in stored.items():
        own = _own_name(key, name, known, where)
        values[own] = known[own].parse(value) if isinstance(value, str) else value
    for key, text in given.items():
        if key not in known:
            raise UserError(f"The method {name!r} has no parameter {key}; {_having(key)}.")
        values[key] = known[key].parse(text)
    if "random_state" in values and values["random_state"] is None:
        # A seed that is written down, so that the run can be repeated.
        values["random_state"] = int(np.random.default_rng().integers(2**31))
    return name, cls, {key: _plain(value) for key, value in values.items()}


def params_text(values: Mapping[str, Any], title: str) -> str:
    """The method and its resolved parameters as a file that `--params` reads."""
    body = yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True)
    return f"# {title}\n{body}"


def _own_name(key: str, method: str, known: Mapping[str, Any], where: Any) -> str:
    plain = key.replace("-", "_")
    own = {short: long for long, short in ALIASES.items()}.get(plain, plain)
    if own not in known and methods_with(own):
        raise UserError(
            f"{where} has the key {key!r}, but the method {method!r} has no such parameter; "
            f"{_having(own)}."
        )
    if own not in known:
        names = [*known, *ALIASES.values(), "method"]
        close = difflib.get_close_matches(plain, names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else f" Known are {', '.join(known)}."
        raise UserError(f"{where} has an unknown key {key!r}.{hint}")
    return own


def _having(name: str) -> str:
    """Which methods have a parameter."""
    methods = methods_with(name)
    if len(methods) == 1:
        return f"{methods[0]} alone has it"
    return f"{', '.join(methods[:-1])} and {methods[-1]} have it"


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
