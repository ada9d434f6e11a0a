"""Who can reach a cluster: TLS settings, and a loud word where there are none."""

from __future__ import annotations

import ipaddress
import os
import socket
import warnings
from pathlib import Path
from typing import Any

from distributed.security import Security

from dmkc.cluster.schema import TLS_FILES, Config
from dmkc.cluster.values import ConfigError

CERTIFICATE_FILES = {"ca_file": "ca.pem", "cert": "cert.pem", "key": "key.pem"}


class InsecureClusterWarning(UserWarning):
    """A scheduler that others can reach and that lets everybody in."""


def security_of(config: Config) -> Security | None:
    """TLS for all roles of the cluster, or None without TLS."""
    tls = config.get("tls")
    if tls is None:
        return None
    if tls == "temporary":
        if config.kind == "existing":
            raise ConfigError(
                f"{config.source}: tls: temporary is for clusters that are started here; an "
                "existing one has certificates of its own."
            )
        try:
            return Security.temporary()
        except ImportError:
            raise ConfigError(
                f"{config.source}: tls: temporary needs the package cryptography (in a "
                "clone: pip install '.[hpc]')."
            ) from None
    files = _files(tls)
    for name, path in files.items():
        if not Path(path).is_file():
            raise ConfigError(f"{config.source}: there is no file {path} for tls.{name}.")
    if os.name == "posix" and Path(files["key"]).stat().st_mode & 0o077:
        raise ConfigError(
            f"{config.source}: the key {files['key']} can be read by others; run chmod 600 on it."
        )
    roles = ("client", "scheduler", "worker")
    pairs = {f"tls_{role}_{what}": files[what] for role in roles for what in ("cert", "key")}
    return Security(tls_ca_file=files["ca_file"], require_encryption=True, **pairs)


def _files(tls: Any) -> dict[str, str]:
    if isinstance(tls, dict):
        return {name: str(Path(tls[name]).expanduser()) for name in TLS_FILES}
    folder = Path(tls).expanduser()
    return {name: str(folder / file) for name, file in CERTIFICATE_FILES.items()}


def warn_if_open(config: Config, address: str, dashboard: str | None) -> None:
    """Warn of a scheduler or dashboard that other machines can reach without a certificate."""
    if config.get("trusted_network"):
        return
    scheme, _, place = address.partition("://")
    if scheme in ("tcp", "ws", "ucx") and not is_loopback(host_of(place)):
        warnings.warn(
            f"The Dask scheduler at {address} listens without TLS beyond this machine: whoever "
            "reaches that port can run code as you. Set tls (see dmkc cluster certs), or "
            "trusted_network: true if only you can reach it.",
            InsecureClusterWarning,
            stacklevel=3,
        )
    if dashboard is not None and not is_loopback(host_of(dashboard)):
        warnings.warn(
            f"The Dask dashboard listens at {dashboard} beyond this machine and asks for no "
            "password; bind it to 127.0.0.1 and reach it through an SSH tunnel.",
            InsecureClusterWarning,
            stacklevel=3,
        )


def host_of(place: str) -> str:
    """The host of "host:port", whose host may be an IPv6 address in brackets."""
    host = place.rpartition(":")[0] if ":" in place else place
    return host.strip("[]")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host name or address; an empty one is every interface."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)} if host else set()
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(place).is_loopback for place in found)
