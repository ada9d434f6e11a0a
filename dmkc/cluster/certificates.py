"""Certificates for a cluster of one's own: an authority that forgets its key, and one pair."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

from dmkc.cluster.network import CERTIFICATE_FILES
from dmkc.cluster.values import ConfigError


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
    target.mkdir(mode=0o700)
    paths = {}
    for name, file in CERTIFICATE_FILES.items():
        paths[name] = target / file
        handle = os.open(paths[name], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(contents[name])
    return paths


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
