"""Who can reach a cluster: TLS settings, a loud word where there are none, and new certificates.

The certificates are made by an authority that forgets its key, and are one pair.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import warnings
from pathlib import Path
from typing import Any

from distributed.security import Security

from dmkc.clusters.schema import TLS_FILES, Config
from dmkc.clusters.values import ConfigError
from dmkc.writing import staged

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


def make_certificates(folder: str | os.PathLike[str], days: int = 365) -> dict[str, Path]:
    """Write ca.pem, cert.pem and key.pem to a new folder that only its owner can read.

    Scheduler, workers and clients all use the one pair: whoever has the folder belongs to the
    cluster.  The authority's key is never written, so that no further certificate can be made.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError:
        raise ConfigError(
            "Certificates need the package cryptography (in a clone: pip install '.[hpc]')."
        ) from None
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= 3650:
        raise ConfigError(f"days must be a whole number from 1 to 3650, not {days!r}.")
    target = Path(folder).expanduser()
    if target.exists():
        raise ConfigError(f"{target} exists; certificates are written to a new folder.")
    if not target.parent.is_dir():
        raise ConfigError(f"The folder {target.parent} does not exist; create it first.")
    now = datetime.datetime.now(datetime.UTC)
    authority_key, pair_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dmkc cluster authority")])
    member = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dmkc cluster")])

    def signed(subject: Any, key: Any, is_authority: bool) -> Any:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(
                x509.BasicConstraints(is_authority, 0 if is_authority else None), critical=True
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
                critical=False,
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(_usage(x509, is_authority), critical=True)
        )
        if not is_authority:
            both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
        return builder.sign(authority_key, hashes.SHA256())

    pem = serialization.Encoding.PEM
    secret = pair_key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    contents = {
        "ca_file": signed(authority, authority_key.public_key(), True).public_bytes(pem),
        "cert": signed(member, pair_key.public_key(), False).public_bytes(pem),
        "key": secret,
    }
    with staged(target, replace=False) as fresh:
        fresh.mkdir(mode=0o700)
        for name, file in CERTIFICATE_FILES.items():
            handle = os.open(fresh / file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as stream:
                stream.write(contents[name])
    return {name: target / file for name, file in CERTIFICATE_FILES.items()}


def _usage(x509: Any, is_authority: bool) -> Any:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
