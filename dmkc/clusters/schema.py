"""What a cluster config may say: the keys of every kind, their checks and their defaults."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dmkc.clusters import values as v
from dmkc.clusters.values import Check, ConfigError
from dmkc.documents import read_document
from dmkc.errors import UserError

STAGGER = 0.05
"""Workers end up to this part of their lifetime apart, so that they do not all end at once."""
QUEUES = ("slurm", "pbs", "lsf", "sge", "htcondor")


@dataclass(frozen=True)
class Key:
    """One key of a config."""

    check: Check
    default: Any = None
    required: bool = False
    here: bool = False
    """A path on this machine, which is relative to the folder of the file."""


@dataclass(frozen=True, eq=False)
class Config(Mapping[str, Any]):
    """A checked config: every key of its kind has a value."""

    kind: str
    settings: Mapping[str, Any]
    source: str
    """The file it came from, or "the config"."""
    given: Mapping[str, Any]
    """What was written, with paths made absolute; valid as a config itself."""

    def __getitem__(self, name: str) -> Any:
        return self.settings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.settings)

    def __len__(self) -> int:
        return len(self.settings)


def _tls(name: str, value: Any) -> Any:
    """ "temporary", a folder of `dmkc cluster certs`, or three files."""
    if isinstance(value, dict):
        return _section(name, value, {k: Key(v.path, required=True) for k in TLS_FILES})
    return v.text(name, value)


def _coordinator(name: str, value: Any) -> dict[str, Any]:
    return _section(name, value, COORDINATOR)


TLS_FILES = ("ca_file", "cert", "key")
DASHBOARD = Key(v.dashboard, default="127.0.0.1:0")
WAIT = Key(v.duration, default=1800.0)
NETWORK = {"tls": Key(_tls, here=True), "trusted_network": Key(v.switch, default=False)}
COORDINATOR = {
    "cores": Key(v.whole(1), default=1),
    "memory": Key(v.memory, default=4 << 30),
    "walltime": Key(v.walltime),
    "queue": Key(v.plain),
    "directives": Key(v.many(v.directive), default=()),
}
THREADS = {
    "threads": Key(v.whole(1)),
    "memory": Key(v.memory),
    "dashboard": Key(v.dashboard),
}
LOCAL = {
    "workers": Key(v.whole(1)),
    "threads": Key(v.whole(1), default=1),
    "memory": Key(v.memory),
    "host": Key(v.plain, default="127.0.0.1"),
    "local_directory": Key(v.path, here=True),
    "dashboard": DASHBOARD,
    **NETWORK,
}
EXISTING = {
    "address": Key(v.address),
    "scheduler_file": Key(v.path, here=True),
    "timeout": Key(v.duration, default=30.0),
    "wait": WAIT,
    **NETWORK,
}
SSH = {
    "hosts": Key(v.some(v.plain), required=True),
    "workers_per_host": Key(v.whole(1), default=1),
    "threads": Key(v.whole(1), default=1),
    "memory": Key(v.memory),
    "local_directory": Key(v.plain),
    "python": Key(v.plain),
    "username": Key(v.plain),
    "port": Key(v.whole(1)),
    "client_keys": Key(v.many(v.path)),
    "known_hosts": Key(v.path, here=True),
    "dashboard": DASHBOARD,
    "wait": WAIT,
    **NETWORK,
}
KUBERNETES = {
    "name": Key(v.plain, default="dmkc"),
    "image": Key(v.plain, required=True),
    "namespace": Key(v.plain),
    "workers": Key(v.whole(1), default=2),
    "adapt": Key(v.counts),
    "cores": Key(v.whole(1), default=1),
    "memory": Key(v.memory, default=4 << 30),
    "environment": Key(v.environment, default={}),
    "wait": WAIT,
    "trusted_network": NETWORK["trusted_network"],
}
QUEUE = {
    "jobs": Key(v.whole(1)),
    "adapt": Key(v.counts),
    "cores": Key(v.whole(1), required=True),
    "memory": Key(v.memory, required=True),
    "processes": Key(v.whole(1), default=1),
    "lifetime": Key(v.duration),
    "name": Key(v.plain, default="dmkc"),
    "interface": Key(v.plain),
    "python": Key(v.text),
    "log_directory": Key(v.path, here=True),
    "local_directory": Key(v.scratch),
    "shared_directory": Key(v.path, here=True),
    "modules": Key(v.many(v.plain), default=()),
    "activate": Key(v.path, here=True),
    "environment": Key(v.environment, default={}),
    "prologue": Key(v.many(v.text), default=()),
    "dashboard": DASHBOARD,
    "death_timeout": Key(v.duration, default=120.0),
    "lost_worker_timeout": Key(v.duration, default=15.0),
    "wait": WAIT,
    "coordinator": Key(_coordinator),
    **NETWORK,
}
TIMED = {"walltime": Key(v.walltime, required=True), "queue": Key(v.plain)}
OPTIONS = {"directives": Key(v.many(v.directive), default=())}
KINDS: dict[str, dict[str, Key]] = {
    "threads": THREADS,
    "local": LOCAL,
    "existing": EXISTING,
    "ssh": SSH,
    "slurm": {**QUEUE, **TIMED, **OPTIONS, "account": Key(v.plain)},
    "pbs": {**QUEUE, **TIMED, **OPTIONS, "account": Key(v.plain), "resources": Key(v.plain)},
    "lsf": {
        **QUEUE,
        **TIMED,
        **OPTIONS,
        "project": Key(v.plain),
        "memory_unit": Key(v.plain, default="mb"),
    },
    "sge": {**QUEUE, **TIMED, **OPTIONS, "project": Key(v.plain), "resources": Key(v.plain)},
    "htcondor": {
        **QUEUE,
        "disk": Key(v.memory, required=True),
        "directives": Key(v.attributes, default={}),
    },
    "kubernetes": KUBERNETES,
}
EITHER = {
    "existing": (("address", "scheduler_file"), True),
    "kubernetes": (("workers", "adapt"), False),
    **{queue: (("jobs", "adapt"), True) for queue in QUEUES},
}
"""Keys of which one alone is given, and whether one must be."""


def read(config: Any) -> Config:
    """The checked config of a YAML file, a mapping, or a config that was read before.

    Examples
    --------
    >>> from dmkc.clusters import read
    >>> read({"kind": "threads", "threads": 2}).kind
    'threads'
    """
    if isinstance(config, Config):
        return config
    if isinstance(config, str | os.PathLike):
        path = Path(config).expanduser()
        return _checked(_load(path), str(path), path.resolve().parent)
    return _checked(config, "the config", Path.cwd())


def _load(path: Path) -> Any:
    try:
        return read_document(path, ".yaml")
    except UserError as problem:
        raise ConfigError(str(problem)) from None


def _checked(given: Any, source: str, folder: Path) -> Config:
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise ConfigError(f"{source} must hold names and values, such as kind: local.")
    written = {name: value for name, value in given.items() if value is not None}
    kind = written.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        hint = _hint(kind, KINDS)
        what = "names no kind" if kind is None else f"is of the unknown kind {kind!r}"
        raise ConfigError(f"{source} {what}; known are {', '.join(KINDS)}.{hint}")
    keys = KINDS[kind]
    for name, key in keys.items():
        if key.here and name in written:
            written[name] = _absolute(written[name], folder)
    try:
        settings = _section("", written, keys)
        _check_either(kind, written)
        _check_lifetime(settings)
    except ConfigError as problem:
        raise ConfigError(f"{source}: {problem}") from None
    if "adapt" in written:
        settings.update({name: None for name in ("jobs", "workers") if name in settings})
    return Config(kind, settings, source, {"kind": kind, **written})


def _section(name: str, given: Any, keys: Mapping[str, Key]) -> dict[str, Any]:
    """The checked values of one mapping; keys left out have their defaults."""
    inside = f"{name}." if name else ""
    if not isinstance(given, Mapping):
        raise ConfigError(f"{name} must hold names and values, not {given!r}.")
    for key in given:
        if key not in keys:
            known = ", ".join(sorted(keys))
            hint = _hint(key, keys) or f" Known are {known}."
            raise ConfigError(f"there is no key {inside}{key}.{hint}")
    found = {}
    for key, about in keys.items():
        if given.get(key) is not None:
            found[key] = about.check(f"{inside}{key}", given[key])
        elif about.required:
            raise ConfigError(f"{inside}{key} is missing, and has no default.")
        else:
            found[key] = about.default
    return found


def _check_either(kind: str, written: Mapping[str, Any]) -> None:
    names, needed = EITHER.get(kind, ((), False))
    there = [name for name in names if name in written]
    if len(there) > 1:
        raise ConfigError(f"{' and '.join(there)} exclude each other; give one of them.")
    if needed and not there:
        raise ConfigError(f"one of {' and '.join(names)} must be given.")


def _check_lifetime(settings: Mapping[str, Any]) -> None:
    lifetime, walltime = settings.get("lifetime"), settings.get("walltime")
    if lifetime is not None and walltime is not None and lifetime * (1 + STAGGER) >= walltime:
        raise ConfigError(
            f"lifetime ({lifetime:.0f} s) must end well before walltime ({walltime} s), so that "
            "workers can hand over what they hold."
        )


def _absolute(value: Any, folder: Path) -> Any:
    """Paths of a file are relative to its folder, wherever the command is started."""
    if isinstance(value, dict):
        return {name: _absolute(item, folder) for name, item in value.items()}
    if not isinstance(value, str) or value == "temporary" or value.startswith("~"):
        return value
    return os.path.join(folder, value)


def _hint(name: Any, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(str(name), known, n=1)
    return f" Did you mean {close[0]}?" if close else ""
