"""Clusters without a batch queue: threads, processes, a running scheduler, SSH, Kubernetes."""

from __future__ import annotations

import gc
import os
from contextlib import ExitStack
from typing import Any

import dask
from distributed import Client, LocalCluster
from distributed.security import Security

from dmkc.clusters.network import warn_if_open
from dmkc.clusters.schema import Config
from dmkc.clusters.values import ConfigError

CONNECT_SECONDS = 60
LOOPBACK = "127.0.0.1:0"
"""Where pages are served that nobody asked for; Dask's default is every interface."""


class ClusterError(RuntimeError):
    """A cluster that could not be started or reached; the text is a sentence."""


def processors() -> int:
    """Processors this process may use, which a batch queue sets below the machine's number."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def scheduler_pages(dashboard: str | None) -> dict[str, Any]:
    """Where a LocalCluster's scheduler serves pages: Dask always serves some, if only its state."""
    shown = {"dashboard": dashboard is not None}
    return {"dashboard_address": dashboard or LOOPBACK, "scheduler_kwargs": shown}


def connected(stack: ExitStack, cluster: Any, security: Security | None, **options: Any) -> Client:
    """A client that is closed with the stack and is nobody's default."""
    return stack.enter_context(Client(cluster, security=security, set_as_default=False, **options))


def start_threads(config: Config, security: Security | None, stack: ExitStack) -> Client:
    """Scheduler and worker in this process, joined by memory instead of sockets."""
    cluster = LocalCluster(
        n_workers=1,
        threads_per_worker=config["threads"] or processors(),
        memory_limit=config["memory"] or "auto",
        processes=False,
        worker_dashboard_address=LOOPBACK,
        **scheduler_pages(config["dashboard"]),
    )
    return connected(stack, stack.enter_context(cluster), None)


def start_local(config: Config, security: Security | None, stack: ExitStack) -> Client:
    """Worker processes on this machine."""
    threads = config["threads"]
    cluster = LocalCluster(
        n_workers=config["workers"] or max(1, processors() // threads),
        threads_per_worker=threads,
        memory_limit=config["memory"] or "auto",
        processes=True,
        host=config["host"],
        local_directory=config["local_directory"],
        security=security,
        protocol="tls://" if security else None,
        worker_dashboard_address=LOOPBACK,
        **scheduler_pages(config["dashboard"]),
    )
    stack.enter_context(cluster)
    warn_if_open(config, cluster.scheduler_address, config["dashboard"])
    return connected(stack, cluster, security)


def connect_existing(config: Config, security: Security | None, stack: ExitStack) -> Client:
    """A scheduler that somebody else runs."""
    where = config["address"] or config["scheduler_file"]
    given = {"scheduler_file": where} if config["address"] is None else {"address": where}
    if config["address"] is None and not os.path.isfile(where):
        raise ConfigError(f"{config.source}: there is no scheduler file {where}.")
    if security is not None and str(config["address"] or "tls:").startswith("tcp:"):
        raise ConfigError(f"{config.source}: with tls the address begins with tls://, not tcp://.")
    client, why = None, ""
    try:
        client = Client(**given, security=security, timeout=config["timeout"], set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as problem:
        why = str(problem)
    if client is None:
        # The collector closes the client that failed, which takes the lock of all event loops: in
        # the thread of a later client's loop it would hold up the start of that one.
        gc.collect()
        raise ClusterError(f"No Dask scheduler can be reached at {where} ({why}).")
    stack.enter_context(client)
    warn_if_open(config, client.scheduler_info(n_workers=0)["address"], None)
    return client


def start_ssh(config: Config, security: Security | None, stack: ExitStack) -> Client:
    """A scheduler on the first host and workers on all others (or on it, when it is alone)."""
    from distributed.deploy.ssh import SSHCluster

    try:
        import asyncssh  # noqa: F401
    except ImportError:
        raise ConfigError(
            "SSH clusters need the package asyncssh (in a clone: pip install '.[ssh]')."
        ) from None
    hosts = list(config["hosts"])
    if security is not None and config["tls"] == "temporary":
        raise ConfigError(
            f"{config.source}: over SSH tls needs certificate files at the same path on all "
            "hosts; make them with dmkc cluster certs."
        )
    connect = {"username": config["username"], "port": config["port"]}
    connect |= {"client_keys": list(config["client_keys"] or ()) or None}
    connect |= {"known_hosts": config["known_hosts"]}
    protocol = {} if security is None else {"protocol": "tls://"}
    # the hosts take their TLS settings from the Dask configuration that is sent along
    stack.enter_context(dask.config.set(_tls_settings(security)))
    try:
        cluster = SSHCluster(
            [hosts[0], *(hosts[1:] or hosts)],
            connect_options={name: value for name, value in connect.items() if value is not None},
            worker_options={
                "nthreads": config["threads"],
                "n_workers": config["workers_per_host"],
                "dashboard_address": LOOPBACK,
                **({"memory_limit": config["memory"]} if config["memory"] else {}),
                **(
                    {"local_directory": config["local_directory"]}
                    if config["local_directory"]
                    else {}
                ),
                **protocol,
            },
            scheduler_options={
                "host": hosts[0],
                "port": 0,
                "dashboard": config["dashboard"] is not None,
                "dashboard_address": config["dashboard"] or LOOPBACK,
                **protocol,
            },
            remote_python=config["python"],
            security=security,
        )
    except Exception as problem:
        raise ClusterError(f"The SSH cluster did not start ({problem}).") from problem
    stack.enter_context(cluster)
    warn_if_open(config, cluster.scheduler_address, None)
    return connected(stack, cluster, security)


def _tls_settings(security: Security | None) -> dict[str, Any]:
    if security is None:
        return {}
    settings: dict[str, Any] = {"distributed.comm.require-encryption": True}
    for role in ("client", "scheduler", "worker"):
        files = security.get_tls_config_for_role(role)
        settings["distributed.comm.tls.ca-file"] = files["ca_file"]
        for what in ("cert", "key"):
            settings[f"distributed.comm.tls.{role}.{what}"] = files[what]
    return settings


def start_kubernetes(config: Config, security: Security | None, stack: ExitStack) -> Client:
    """Pods that the operator of dask-kubernetes makes."""
    try:
        from dask_kubernetes.operator import KubeCluster
    except ImportError:
        raise ConfigError(
            "Kubernetes clusters need the package dask-kubernetes (in a clone: pip install "
            "'.[kubernetes]')."
        ) from None
    where = {} if config["namespace"] is None else {"namespace": config["namespace"]}
    try:
        cluster = KubeCluster(custom_cluster_spec=kubernetes_spec(config), **where)
    except Exception as problem:
        raise ClusterError(f"The Kubernetes cluster did not start ({problem}).") from problem
    stack.enter_context(cluster)
    if config["adapt"]:
        cluster.adapt(config["adapt"]["minimum"], config["adapt"]["maximum"])
    return connected(stack, cluster, None)


def kubernetes_spec(config: Config) -> dict[str, Any]:
    """The DaskCluster resource (kubernetes.dask.org/v1) that the operator acts on."""
    memory = f"{config['memory'] >> 20}Mi"
    amounts = {"cpu": str(config["cores"]), "memory": memory}
    container: dict[str, Any] = {
        "image": config["image"],
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": name, "value": value} for name, value in config["environment"].items()],
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {"allowPrivilegeEscalation": False},
    }
    worker_args = ["dask", "worker", "--name", "$(DASK_WORKER_NAME)", "--no-dashboard"]
    worker_args += ["--nthreads", str(config["cores"]), "--memory-limit", memory + "B"]
    ports = [("tcp-comm", 8786), ("http-dashboard", 8787)]
    listening = [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports]
    selector = {"dask.org/cluster-name": config["name"], "dask.org/component": "scheduler"}
    health = {"httpGet": {"port": "http-dashboard", "path": "/health"}, "periodSeconds": 10}
    scheduler = {**container, "name": "scheduler", "args": ["dask", "scheduler"]}
    scheduler |= {"ports": listening, "readinessProbe": health, "livenessProbe": health}
    workers = config["workers"] if config["adapt"] is None else config["adapt"]["minimum"]
    return {
        "apiVersion": "kubernetes.dask.org/v1",
        "kind": "DaskCluster",
        "metadata": {"name": config["name"]},
        "spec": {
            "idleTimeout": 0,
            "worker": {
                "replicas": workers,
                "spec": {"containers": [{**container, "name": "worker", "args": worker_args}]},
            },
            "scheduler": {
                "spec": {"containers": [scheduler]},
                "service": {
                    "type": "ClusterIP",
                    "selector": selector,
                    "ports": [
                        {"name": name, "port": port, "targetPort": name, "protocol": "TCP"}
                        for name, port in ports
                    ],
                },
            },
        },
    }
