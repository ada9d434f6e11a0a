"""Clusters that are really started: what runs, who can reach it, what is left afterwards."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import ssl
import stat
import subprocess
import sys
import time
import urllib.request
import warnings

import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster
from distributed.security import Security
from distributed.utils import get_ip

from dmkc import MultipleKernelClustering, clusters
from dmkc.clusters.network import InsecureClusterWarning, is_loopback
from dmkc.clusters.opening import check_versions, dashboard_of
from dmkc.clusters.smoke import one_worker, smoke_scan
from dmkc.datasets import make_blobs
from dmkc.scan.versions import VersionsDiffer


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls") / "certs"
    clusters.make_certificates(folder)
    return folder


def listening():
    """Addresses at which this process and its children listen."""
    found = set()
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        for connection in process.net_connections(kind="inet"):
            if connection.status == psutil.CONN_LISTEN:
                found.add((connection.laddr.ip, connection.laddr.port))
    return found


def soon(holds):
    """Whether something holds after a while: the system ends processes at its leisure."""
    for _ in range(500):
        if holds():
            return True
        time.sleep(0.02)
    return False


def test_labels_are_those_of_plain_threads():
    X, _ = make_blobs(3000, 4, 2, spread=1.5, seed=0)
    model = MultipleKernelClustering(random_state=0, rank=10, sample_rows=500)
    expected = model.fit(X).labels_
    for config in ({"kind": "threads", "threads": 2}, {"kind": "local", "workers": 1}):
        with clusters.open(config) as client:
            assert Client.current() is client
            np.testing.assert_array_equal(model.fit(X).labels_, expected)
        assert client.status == "closed"
    with pytest.raises(ValueError):
        Client.current()


def test_threads_are_reached_from_this_machine_only():
    before, config = listening(), clusters.read({"kind": "threads", "threads": 1})
    with clusters.open(config) as client:
        assert {ip for ip, _ in listening() - before} <= {"127.0.0.1"}
        assert dashboard_of(client, config) is None
        assert smoke_scan(client).seconds > 0


def children_of_this():
    """Processes below this one, without those that Python itself keeps for starting others."""
    helpers = ("resource_tracker", "forkserver")
    found = set()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.is_running() and not any(h in " ".join(child.cmdline()) for h in helpers):
                found.add(child)
    return found


def test_a_local_cluster_listens_on_loopback_only():
    before = listening()
    children = children_of_this()
    with warnings.catch_warnings():
        warnings.simplefilter("error", InsecureClusterWarning)
        config = clusters.read({"kind": "local", "workers": 1})
        with clusters.open(config) as client:
            new = listening() - before
            assert len(new) >= 3  # scheduler, dashboard, worker
            assert {ip for ip, _ in new} == {"127.0.0.1"}
            with urllib.request.urlopen(dashboard_of(client, config)) as page:
                assert page.status == 200
    assert soon(lambda: children_of_this() <= children)
    assert soon(lambda: not listening() - before)


def test_a_cluster_is_closed_when_its_user_fails():
    with pytest.raises(ZeroDivisionError), clusters.open({"kind": "local", "workers": 1}) as client:
        raise ZeroDivisionError
    assert client.status == "closed" and client.cluster.status.name == "closed"


def test_an_open_scheduler_without_tls_is_warned_of(unavailable):
    config = {"kind": "local", "workers": 1, "host": "0.0.0.0", "dashboard": False}
    if is_loopback(get_ip()):
        unavailable("this machine has no address but loopback")
    with (
        pytest.warns(InsecureClusterWarning, match="without TLS") as caught,
        clusters.open(config),
    ):
        pass
    assert len([w for w in caught if w.category is InsecureClusterWarning]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", InsecureClusterWarning)
        with clusters.open({**config, "trusted_network": True}):
            pass
        with clusters.open({**config, "tls": "temporary"}) as client:
            assert client.scheduler_info()["address"].startswith("tls://")


def test_an_open_dashboard_is_warned_of():
    config = {"kind": "local", "workers": 1, "dashboard": "0.0.0.0:0"}
    with pytest.warns(InsecureClusterWarning, match="dashboard"), clusters.open(config):
        pass


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("", False),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("no-such-host.invalid", False),
    ],
)
def test_loopback(host, inside):
    assert is_loopback(host) is inside


def test_an_existing_scheduler_by_address_and_by_file(thread_client, process_client, tmp_path):
    address = process_client.scheduler_info()["address"]
    with clusters.open({"kind": "existing", "address": address}) as client:
        assert len(client.nthreads()) == 2
        assert smoke_scan(client).description.startswith("2 Dask worker")
    assert process_client.status == "running"  # ours was only a guest
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps({"type": "Scheduler", "address": address, "workers": {}}))
    with clusters.open({"kind": "existing", "scheduler_file": str(path)}) as client:
        assert len(client.nthreads()) == 2


def test_a_scheduler_that_is_not_there():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        config = {"kind": "existing", "address": address, "timeout": "1s"}
        with pytest.raises(clusters.ClusterError, match="No Dask scheduler"), clusters.open(config):
            pass
    with (
        pytest.raises(clusters.ConfigError, match="no scheduler file"),
        clusters.open({"kind": "existing", "scheduler_file": "/nonexistent.json"}),
    ):
        pass


def test_workers_that_never_come():
    with LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address=None) as none:
        config = {"kind": "existing", "address": none.scheduler_address, "wait": "1s"}
        with pytest.raises(clusters.ClusterError, match="No worker"), clusters.open(config):
            pass


def test_a_queue_that_refuses_every_job_says_why(tmp_path, monkeypatch):
    calls, qsub = tmp_path / "calls", tmp_path / "qsub"
    qsub.write_text(
        f"#!/bin/sh\necho x >> {calls}\necho 'job rejected: no such queue' >&2\nexit 1\n"
    )
    qsub.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("dmkc.clusters.opening.LOOK_SECONDS", 0.2)
    monkeypatch.setattr("dmkc.clusters.queues.RETRY_SECONDS", (0.1,))
    config = {
        "kind": "sge",
        "jobs": 1,
        "cores": 1,
        "memory": "1GiB",
        "walltime": "00:10:00",
        "interface": "lo",
        "wait": "10 min",
        "log_directory": str(tmp_path / "logs"),
    }
    why = "refused every worker job: job rejected: no such queue"
    with (
        pytest.raises(clusters.ClusterError, match=why),
        clusters.open(config),
    ):
        pass
    assert len(calls.read_text().split()) == 2


def test_workers_with_other_versions_are_refused(process_client, monkeypatch):
    check_versions(process_client)
    monkeypatch.setattr("dmkc.scan.versions.__version__", "99.0")
    with pytest.raises(clusters.ClusterError, match=r"dmkc .* \(here 99.0\)"):
        check_versions(process_client)
    with pytest.raises(VersionsDiffer, match=r"dmkc .* \(here 99.0\)"):
        MultipleKernelClustering(client=process_client).fit(np.eye(8))


def test_workers_without_dmkc_are_refused(process_client, monkeypatch):
    monkeypatch.setattr(process_client, "run", lambda *_, **__: {"tcp://a": ImportError("none")})
    with pytest.raises(VersionsDiffer, match="tcp://a cannot run dmkc"):
        MultipleKernelClustering(client=process_client).fit(np.eye(8))


def test_certificates_are_private_and_verified(certificates):
    assert stat.S_IMODE(certificates.stat().st_mode) == 0o700
    names = sorted(path.name for path in certificates.iterdir())
    assert names == ["ca.pem", "cert.pem", "key.pem"]
    for path in certificates.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    command = ["openssl", "verify", "-x509_strict", "-CAfile", str(certificates / "ca.pem")]
    subprocess.run([*command, str(certificates / "cert.pem")], check=True, capture_output=True)
    with pytest.raises(clusters.ConfigError, match="exists"):
        clusters.make_certificates(certificates)
    with pytest.raises(clusters.ConfigError, match="days"):
        clusters.make_certificates(certificates.parent / "x", days=0)


def check_refused(address, **options):
    with pytest.raises((OSError, TypeError, RuntimeError)):
        Client(address, timeout=2, **options)
    gc.collect()  # closes that client here, and not in the thread of another one's event loop


def test_tls_lets_in_only_who_has_the_certificate(certificates, tmp_path):
    with clusters.open({"kind": "local", "workers": 1, "tls": str(certificates)}) as client:
        address = client.scheduler_info()["address"]
        assert address.startswith("tls://127.0.0.1:")
        assert smoke_scan(client).seconds > 0
        with clusters.open(
            {"kind": "existing", "address": address, "tls": str(certificates)}
        ) as two:
            assert len(two.nthreads()) == 1
        check_refused(address, loop=client.loop)
        check_refused(address.replace("tls:", "tcp:"), loop=client.loop)
        other = tmp_path / "other"
        clusters.make_certificates(other)
        stranger = Security(
            tls_ca_file=str(certificates / "ca.pem"),
            tls_client_cert=str(other / "cert.pem"),
            tls_client_key=str(other / "key.pem"),
            require_encryption=True,
        )
        check_refused(address, security=stranger, loop=client.loop)
        config = {"kind": "existing", "address": address, "tls": str(other), "timeout": "2s"}
        with pytest.raises(clusters.ClusterError, match="No Dask scheduler"), clusters.open(config):
            pass
        assert client.submit(sum, [1, 2]).result() == 3


def test_tls_files_that_are_wrong(certificates, tmp_path):
    config = {"kind": "local", "workers": 1}
    with (
        pytest.raises(clusters.ConfigError, match="no file"),
        clusters.open({**config, "tls": str(tmp_path)}),
    ):
        pass
    loose = tmp_path / "loose"
    clusters.make_certificates(loose)
    os.chmod(loose / "key.pem", 0o644)
    with (
        pytest.raises(clusters.ConfigError, match="chmod 600"),
        clusters.open({**config, "tls": str(loose)}),
    ):
        pass
    existing = {"kind": "existing", "address": "tls://127.0.0.1:1", "tls": "temporary"}
    with (
        pytest.raises(clusters.ConfigError, match="certificates of its own"),
        clusters.open(existing),
    ):
        pass
    plain = {"kind": "existing", "address": "tcp://127.0.0.1:1", "tls": str(certificates)}
    with pytest.raises(clusters.ConfigError, match="tls://"), clusters.open(plain):
        pass


def test_a_trial_needs_one_worker_only():
    given = {"kind": "slurm", "cores": 1, "memory": "1GiB", "walltime": "01:00:00"}
    trial = one_worker(clusters.read({**given, "adapt": {"minimum": 3, "maximum": 9}}))
    assert trial["jobs"] == 1 and trial["adapt"] is None
    assert one_worker(clusters.read({"kind": "local", "workers": 8}))["workers"] == 1


def test_missing_extras_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    monkeypatch.setitem(sys.modules, "dask_kubernetes.operator", None)
    monkeypatch.setitem(sys.modules, "asyncssh", None)
    queue = {"kind": "slurm", "jobs": 1, "cores": 1, "memory": "1GiB", "walltime": "01:00:00"}
    for config, words in (
        (queue, r"dask-jobqueue .*'\.\[hpc\]'"),
        ({"kind": "kubernetes", "image": "x"}, r"'\.\[kubernetes\]'"),
        ({"kind": "ssh", "hosts": ["a"]}, r"asyncssh .*'\.\[ssh\]'"),
    ):
        with pytest.raises(clusters.ConfigError, match=words), clusters.open(config):
            pass
