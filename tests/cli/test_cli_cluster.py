"""`dmkc cluster` and `--cluster`."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

FAST = ("--method", "mkc", "--rank", "20", "--tol", "1e-2", "--seed", "0", "--init", "k-means")
LOCAL = "kind: local\nworkers: 1\n"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "local.yaml"
    path.write_text(LOCAL)
    return path


def test_check_shows_what_would_run(call, tmp_path):
    (tmp_path / "s.yaml").write_text(
        "kind: slurm\njobs: 2\ncores: 4\nmemory: 8GiB\nwalltime: '01:00:00'\nqueue: short\n"
    )
    out = call("cluster", "check", "s.yaml").out
    for words in ("kind", "8.00 GiB", "3600 s", "#SBATCH -p short", "#SBATCH --mem=8G"):
        assert words in out
    (tmp_path / "k.yaml").write_text("kind: kubernetes\nimage: me/dmkc:1\n")
    assert "kind: DaskCluster" in call("cluster", "check", "k.yaml").out


def test_check_starts_a_worker(call, config):
    out = call("cluster", "check", config, "--start").out
    assert "the same bits as in this process" in out and "1 Dask worker" in out
    assert "http://127.0.0.1:" in out


def test_mistakes_are_sentences(call, tmp_path):
    (tmp_path / "bad.yaml").write_text("kind: local\nworker: 2\n")
    assert "Did you mean workers?" in call("cluster", "check", "bad.yaml", code=2).err
    assert "no such file" in call("cluster", "check", "absent.yaml", code=2).err
    assert "Choose check or certs" in call("cluster", code=2).err
    (tmp_path / "x.npy").write_bytes(b"")
    assert (
        "not allowed with"
        in call("fit", "x.npy", "--out", "run", "--cluster", "a", "--scheduler", "b", code=2).err
    )


def test_certs(call, tmp_path):
    out = call("cluster", "certs", "certs")
    assert (tmp_path / "certs" / "key.pem").stat().st_mode & 0o777 == 0o600
    assert f"tls: {tmp_path / 'certs'}" in out.err
    assert "exists" in call("cluster", "certs", "certs", code=2).err
    assert "whole number" in call("cluster", "certs", "b", "--days", "x", code=2).err


def test_every_command_that_computes_runs_on_a_cluster(call, fit, config, data, tmp_path):
    np.save("x.npy", data[0])
    np.save("y.npy", data[1])
    on = ("--cluster", config)
    shown = call("fit", "x.npy", "--out", "run", "--no-report", *FAST, *on)
    assert "1 Dask worker" in shown.err and "dashboard: http://127.0.0.1" in shown.err
    fit("x.npy", "--out", "plain")
    here, there = (zarr.open_array(f"{run}/labels.zarr", mode="r")[:] for run in ("plain", "run"))
    np.testing.assert_array_equal(here, there)
    (tmp_path / "threads.yaml").write_text("kind: threads\nthreads: 1\n")
    on = ("--cluster", "threads.yaml")
    call("predict", "run", "x.npy", "--out", "again.zarr", "--quiet", *on)
    np.testing.assert_array_equal(zarr.open_array("again.zarr", mode="r")[:], here)
    alone = call("evaluate", "again.zarr", "y.npy", "--json").out
    assert call("evaluate", "again.zarr", "y.npy", "--json", *on).out == alone
    call("datasets", "make", "blobs", "--rows", "500", "--out", "a.zarr", *on)
    call("datasets", "make", "blobs", "--rows", "500", "--out", "b.zarr")
    a, b = (zarr.open_group(f"{name}.zarr", mode="r")["X"][:] for name in "ab")
    np.testing.assert_array_equal(a, b)
