"""Checks of the single values of a cluster config.

Every check takes the key's name and the value and returns what the rest of the package uses.  What
ends up in a job script is either made of harmless characters or quoted for the shell.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from dask.utils import parse_bytes

from dmkc.errors import UserError

Check = Callable[[str, Any], Any]

LEAST_MEMORY, MOST_MEMORY = 64 << 20, 1 << 60
MOST_COUNT = 1_000_000
"""Workers, threads, jobs and the like, at most."""
PLAIN = re.compile(r"[A-Za-z0-9_.@:+,=%/~-]+")
ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
VARIABLE_FIRST = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)((?:/[A-Za-z0-9_.@:+,=%~-]*)*)")
CONTROL = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029]")
WALLTIME = re.compile(r"(?:(\d{1,4})-)?(\d{1,4}):([0-5]\d):([0-5]\d)")
UNITS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
DURATION = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?)\s*({'|'.join(UNITS)})")
ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss|inproc)://\S+")


class ConfigError(UserError):
    """A cluster config that cannot be used; the text is a sentence for its author."""


def text(name: str, value: Any) -> str:
    """One line of text."""
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{name} must be a text, not {value!r}.")
    if CONTROL.search(value):
        raise ConfigError(f"{name} must be one line without control characters, not {value!r}.")
    return value.strip()


def plain(name: str, value: Any) -> str:
    """A word that means nothing to a shell or a queue but itself."""
    value = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    word = text(name, value)
    if not PLAIN.fullmatch(word) or word.startswith("-"):
        raise ConfigError(
            f"{name} must be made of letters, digits and _.@:+,=%/~- and not begin with -, as it "
            f"is written into a job script, but is {value!r}."
        )
    return word


def whole(least: int) -> Check:
    """A whole number of at least `least`."""

    def check(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"{name} must be a whole number of at least {least}, not {value!r}.")
        if value > MOST_COUNT:
            raise ConfigError(f"{name} must be at most {MOST_COUNT}, not {value!r}.")
        return value

    return check


def switch(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be true or false, not {value!r}.")
    return value


def memory(name: str, value: Any) -> int:
    """Bytes from a text such as "4GiB"."""
    try:
        found = parse_bytes(text(name, value))
    except (ValueError, OverflowError):
        raise ConfigError(f'{name} must be an amount such as "4GiB", not {value!r}.') from None
    if found < LEAST_MEMORY:
        raise ConfigError(f"{name} is {value!r}, which is too little for a worker.")
    if found > MOST_MEMORY:
        raise ConfigError(f"{name} is {value!r}, which no machine has.")
    return int(found)


def walltime(name: str, value: Any) -> int:
    """Seconds from "HH:MM:SS" or "D-HH:MM:SS"."""
    found = WALLTIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ConfigError(
            f'{name} must be a text such as "02:00:00" or "1-12:00:00", in quotes, since YAML '
            f"reads 1:30:00 as a number; it is {value!r}."
        )
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    total = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if total.total_seconds() < 60:
        raise ConfigError(f"{name} must be a minute or more, not {value!r}.")
    return int(total.total_seconds())


def duration(name: str, value: Any) -> float:
    """Seconds from a text such as "10 min"."""
    found = DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    seconds = float(found[1]) * UNITS[found[2]] if found else 0.0
    if not seconds > 0:
        raise ConfigError(f'{name} must be a time such as "90s" or "10 min", not {value!r}.')
    return seconds


def many(check: Check) -> Check:
    """A list of values."""

    def checked(name: str, value: Any) -> tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{name} must be a list, not {value!r}.")
        return tuple(check(f"{name}[{i}]", item) for i, item in enumerate(value))

    return checked


def some(check: Check) -> Check:
    """A list of one value or more."""

    def checked(name: str, value: Any) -> tuple:
        found = many(check)(name, value)
        if not found:
            raise ConfigError(f"{name} must list at least one.")
        return found

    return checked


def directive(name: str, value: Any) -> str:
    """An option of a queue, which becomes a comment line that only the queue reads."""
    line = text(name, value)
    if not line.startswith("-") or re.search(r"[`$;\\]", line):
        raise ConfigError(
            f"{name} must be an option of the queue, such as --gres=gpu:1, without `, $, ; and "
            f"backslashes, but is {value!r}."
        )
    return line


def attributes(name: str, value: Any) -> dict[str, str]:
    """Submit commands of HTCondor by name."""
    if not isinstance(value, dict):
        raise ConfigError(f"{name} must hold names and values, not {value!r}.")
    found = {}
    for key, item in value.items():
        reserved = str(key).lower() in ("executable", "arguments", "queue", "include")
        if reserved or not re.fullmatch(r"\+?[A-Za-z_][A-Za-z0-9_.]*", str(key)):
            raise ConfigError(f"{name} has {key!r}, which may not be set there.")
        words = text(f"{name}.{key}", item if isinstance(item, str) else str(item))
        if re.search(r"[`$;\\]", words):
            raise ConfigError(f"{name}.{key} must hold no `, $, ; or backslash, but is {item!r}.")
        found[str(key)] = words
    return found


def environment(name: str, value: Any) -> dict[str, str]:
    """Environment variables; values are quoted where they are written."""
    if not isinstance(value, dict):
        raise ConfigError(f"{name} must hold names and values, not {value!r}.")
    found = {}
    for key, item in value.items():
        if not isinstance(key, str) or not ENVIRONMENT_NAME.fullmatch(key):
            raise ConfigError(f"{name} has {key!r}, which is no name of an environment variable.")
        given = item if isinstance(item, str) else str(item)
        if CONTROL.search(given):
            raise ConfigError(f"{name}.{key} must be one line, not {item!r}.")
        found[key] = given
    return found


def scratch(name: str, value: Any) -> str:
    """A folder on the workers, quoted for the shell; it may begin with a variable like $TMPDIR."""
    given = text(name, value)
    found = VARIABLE_FIRST.fullmatch(given)
    if found is not None:
        return f'"${{{found[1]}}}"{found[2]}'
    if "$" in given or "`" in given:
        raise ConfigError(f"{name} may begin with one variable, such as $TMPDIR, not be {value!r}.")
    if not given.startswith("/"):
        raise ConfigError(f"{name} must be a full path on the workers, not {value!r}.")
    return shlex.quote(given)


def address(name: str, value: Any) -> str:
    """A scheduler's address."""
    found = text(name, value)
    if not ADDRESS.fullmatch(found):
        raise ConfigError(
            f"{name} must be such as tcp://host:8786 or tls://host:8786, not {value!r}."
        )
    return found


def dashboard(name: str, value: Any) -> str | None:
    """Where the dashboard listens, or None for nowhere."""
    if value is False:
        return None
    found = text(name, value)
    if not re.fullmatch(r"(\S*):(\d{1,5})", found) or int(found.rpartition(":")[2]) > 65535:
        raise ConfigError(
            f'{name} must be a place such as "127.0.0.1:8787" (port 0: any), or off, not {value!r}.'
        )
    return found


def path(name: str, value: Any) -> str:
    """A path on this machine; made absolute by the schema, which knows the file's folder."""
    given = text(name, value)
    if "$" in given:
        raise ConfigError(f"{name} must be a path without variables, not {value!r}.")
    return os.path.expanduser(given)


def counts(name: str, value: Any) -> dict[str, Any]:
    """Least and most jobs of an adaptive cluster, and how long an idle one is kept."""
    wanted, known = {"minimum", "maximum"}, {"minimum", "maximum", "idle"}
    if not isinstance(value, dict) or not wanted <= set(value) <= known:
        raise ConfigError(
            f"{name} must hold minimum and maximum (and perhaps idle), such as "
            "{minimum: 1, maximum: 8}."
        )
    low = whole(0)(f"{name}.minimum", value["minimum"])
    high = whole(1)(f"{name}.maximum", value["maximum"])
    if high < low:
        raise ConfigError(f"{name}.maximum is {high}, which is below {name}.minimum ({low}).")
    return {
        "minimum": low,
        "maximum": high,
        "idle": duration(f"{name}.idle", value.get("idle", "60s")),
    }
