"""`dmkc cluster`: look at a cluster config before it is used; certificates for TLS."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from dask.utils import format_bytes

from dmkc import clusters
from dmkc.cli.common import Failure, add_command, define, print_pairs, say
from dmkc.cli.options import as_argument
from dmkc.clusterers.estimator import Facts
from dmkc.clusterers.parameters import whole_number
from dmkc.clusters.opening import dashboard_of
from dmkc.clusters.queues import script
from dmkc.clusters.schema import QUEUES, Config
from dmkc.clusters.smoke import one_worker, smoke_scan
from dmkc.clusters.start import kubernetes_spec
from dmkc.showing import printable

SIZES = ("memory", "disk")


def add(parser: argparse.ArgumentParser) -> None:
    example = "dmkc cluster check cluster_configs/slurm.yaml --start"
    define(parser, example, lambda args: parser.error("Choose check or certs"))
    inner = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    check = add_command(inner, "check", "check a config and show its job script", example, _check)
    check.add_argument("config", metavar="CONFIG", help="YAML file, as in cluster_configs")
    check.add_argument("--start", action="store_true", help="start one worker and run a scan on it")
    example = "dmkc cluster certs ~/certs"
    certs = add_command(inner, "certs", "make certificates for a TLS cluster", example, _certs)
    certs.add_argument("folder", metavar="FOLDER", help="new folder to write them to")
    certs.add_argument(
        "--days",
        type=as_argument(whole_number),
        default=365,
        metavar="N",
        help="how long they are valid [365]",
    )


def _check(args: argparse.Namespace) -> None:
    config = clusters.read(args.config)
    print_pairs([("kind", config.kind), *_settings(config)])
    if config.kind in QUEUES:
        print(f"\njob script of a worker:\n\n{script(config, _security(config))}", end="")
    if config.kind == "kubernetes":
        print(f"\nresource:\n\n{yaml.safe_dump(kubernetes_spec(config), sort_keys=False)}", end="")
    if args.start:
        _start(config)


def _security(config: Config) -> Any:
    from dmkc.clusters.network import security_of

    return security_of(config)


def _settings(settings: Mapping[str, Any], inside: str = "") -> Facts:
    """What a config comes to, sizes and times as people write them."""
    shown: Facts = []
    for name, value in settings.items():
        if name in ("coordinator", "adapt") and value is not None:
            shown += _settings(value, f"{name}.")
        elif value is not None and value not in ((), {}):
            shown.append((inside + name, _shown(name, value)))
    return shown


def _shown(name: str, value: Any) -> Any:
    if name in SIZES:
        return format_bytes(value)
    if name == "walltime":
        return f"{value} s"
    return f"{value:.0f} s" if isinstance(value, float) else value


def _start(config: Config) -> None:
    say(f"starting one worker of the {config.kind} cluster")
    began = time.perf_counter()
    try:
        with clusters.open(one_worker(config)) as client:
            up = time.perf_counter() - began
            found = smoke_scan(client)
            print_pairs(
                [
                    ("\nstarted in", f"{up:.1f} s"),
                    ("dashboard", dashboard_of(client, config) or "off"),
                    ("scan on", found.description),
                    ("seconds a scan", found.seconds),
                    ("result", "the same bits as in this process"),
                ]
            )
    except clusters.ClusterError as problem:
        raise Failure(str(problem)) from problem


def _certs(args: argparse.Namespace) -> None:
    paths = clusters.make_certificates(args.folder, args.days)
    for path in paths.values():
        print(printable(path))
    folder = next(iter(paths.values())).parent.resolve()
    say(f"write tls: {folder} into the config; whoever can read {Path(args.folder)} can join")
