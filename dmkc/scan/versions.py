"""Versions that must agree between this process and the workers, since labels depend on them."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
from collections.abc import Collection
from typing import Any

from distributed import Client

from dmkc.scan.warming import begin
from dmkc.version import __version__

PACKAGES = ("dmkc", "numpy", "scipy", "numba", "dask", "distributed", "zarr")


class VersionsDiffer(RuntimeError):
    """Workers that would compute something else, or nothing; the text is a sentence."""


def check_versions(client: Client, workers: Collection[str] | None = None) -> None:
    """Refuse workers with other versions: labels are promised for one set of them."""
    here = versions()
    asked = None if workers is None else list(workers)
    everywhere: dict[str, Any] = client.run(introduced, workers=asked, on_error="return")
    for address, there in everywhere.items():
        if isinstance(there, OSError):
            continue  # it has ended meanwhile
        if isinstance(there, BaseException):
            raise VersionsDiffer(
                f"The worker {address} cannot run dmkc ({there}); install the same dmkc there as "
                "here."
            )
        other = [
            f"{name} {there[name]} (here {here[name]})"
            for name in here
            if there[name] != here[name]
        ]
        if other:
            raise VersionsDiffer(
                f"The worker {address} has {', '.join(other)}; labels are the same everywhere "
                "only with the same versions, so install those."
            )


async def introduced(dask_worker: Any) -> dict[str, str]:
    """Versions of a worker, which from now on prepares itself for scans."""
    begin(dask_worker)
    return versions()


def versions() -> dict[str, str]:
    """Versions in this process."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return {**dict.fromkeys(PACKAGES, "none"), **found, "dmkc": __version__}
