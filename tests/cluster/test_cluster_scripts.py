"""Job scripts against what the manuals of the queues say, and against a shell."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest
import yaml

from dmkc import clusters
from dmkc.clusters.queues import script
from dmkc.clusters.start import kubernetes_spec

COMMON = {
    "jobs": 3,
    "cores": 4,
    "memory": "8GiB",
    "name": "trial",
    "local_directory": "$TMPDIR/dmkc",
    "environment": {"NOTE": "it's $HOME; `id`"},
}
TIMED = {"walltime": "26:30:00", "queue": "short"}


def lines(kind, mark, **more):
    """The options that the queue reads, and the lines that the shell runs."""
    timed = {} if kind == "htcondor" else TIMED
    text = script(clusters.read({"kind": kind, **COMMON, **timed, **more}))
    rows = text.splitlines()
    assert rows[0].startswith("#!")
    options = [row.removeprefix(mark).strip() for row in rows if row.startswith(mark)]
    return options, [row for row in rows[1:] if row.strip() and not row.startswith("#")]


def assert_worker(command):
    """The shell would start a worker with these words."""
    words = shlex.split(command)
    assert words[0] == sys.executable
    assert words[1:4] == ["-m", "distributed.cli.dask_worker", "tcp://SCHEDULER:PORT"]
    for pair in (["--nthreads", "4"], ["--memory-limit", "8.00GiB"], ["--name", "WORKER"]):
        at = words.index(pair[0])
        assert words[at : at + 2] == pair
    assert words[words.index("--local-directory") + 1] == "${TMPDIR}/dmkc"
    assert "--no-dashboard" in words and "--nanny" in words
    assert words[words.index("--dashboard-address") + 1] == "127.0.0.1:0"


def test_slurm(tmp_path):
    options, body = lines("slurm", "#SBATCH", account="me", directives=["--gres=gpu:1"])
    # sbatch(1): -J name, -p partition, -A account, -n tasks, -c per task, --mem, -t D-HH:MM:SS
    for option in ("-J trial", "-p short", "-A me", "-n 1", "--cpus-per-task=4", "--mem=8G"):
        assert option in options
    assert "-t 26:30:00" in options and options[-1] == "--gres=gpu:1"
    assert_worker(body[-1])


def test_pbs():
    options, body = lines("pbs", "#PBS", account="me", directives=["-m n"])
    # qsub(1B) of PBS: -N name, -q queue, -A account, -l select=N:ncpus=C:mem=M, -l walltime
    for option in ("-N trial", "-q short", "-A me", "-l select=1:ncpus=4:mem=8192MB"):
        assert option in options
    assert "-l walltime=26:30:00" in options and options[-1] == "-m n"
    assert_worker(body[-1])
    chosen, _ = lines("pbs", "#PBS", resources="select=1:ncpus=4:mem=8GB:mpiprocs=1")
    assert "-l select=1:ncpus=4:mem=8GB:mpiprocs=1" in chosen


def test_lsf():
    options, body = lines("lsf", "#BSUB", project="me", directives=["-x"])
    # bsub: -J name, -q queue, -P project, -n slots on one host, -M in LSF_UNIT_FOR_LIMITS, -W HH:MM
    for option in ("-J trial", "-q short", '-P "me"', "-n 4", '-R "span[hosts=1]"', "-M 8590"):
        assert option in options
    assert "-W 26:30" in options and options[-1] == "-x"
    assert_worker(body[-1])
    in_gb, _ = lines("lsf", "#BSUB", memory_unit="gb")
    assert "-M 9" in in_gb


def test_sge():
    options, body = lines(
        "sge", "#$", project="me", resources="h_vmem=2G", directives=["-pe smp 4"]
    )
    # qsub(1) of Grid Engine: -N name, -q queue, -P project, -l resource, h_rt as HH:MM:SS, -pe
    for option in ("-N trial", "-q short", "-P me", "-l h_vmem=2G", "-l h_rt=26:30:00", "-cwd"):
        assert option in options
    assert options[-1] == "-pe smp 4"
    assert_worker(body[-1])


def test_htcondor():
    text = script(
        clusters.read(
            {
                "kind": "htcondor",
                **COMMON,
                "disk": "1GiB",
                "directives": {"Requirements": '(OpSys == "LINUX")'},
            }
        )
    )
    pairs = dict(row.split(" = ", 1) for row in text.splitlines() if " = " in row)
    # condor_submit: amounts in cores, MiB and KiB; Arguments in the quotes of the new syntax
    assert pairs["RequestCpus"] == "MY.DaskWorkerCores" and pairs["MY.DaskWorkerCores"] == "4"
    assert pairs["RequestMemory"] == "floor(MY.DaskWorkerMemory / 1048576)"
    assert int(pairs["MY.DaskWorkerMemory"]) == 8 << 30
    assert int(pairs["MY.DaskWorkerDisk"]) == 1 << 30
    assert pairs["Requirements"] == '(OpSys == "LINUX")'
    assert pairs["Executable"] == "/bin/sh"
    assert text.rstrip().endswith("Queue")
    inner = pairs["Arguments"].removeprefix("\"-c '").removesuffix("'\"")
    command = inner.replace("''", "'").replace('""', '"')
    assert_worker(command.rpartition("; ")[2])


@pytest.mark.parametrize("kind", ["slurm", "pbs", "lsf", "sge"])
def test_values_reach_the_worker_unharmed(kind, tmp_path):
    """The lines before the worker, run by a real shell, set exactly what the config says."""
    _, body = lines(kind, "#", activate=str(tmp_path))
    assert body[0] == f". {tmp_path}/bin/activate"
    shown = subprocess.run(
        ["bash", "-c", "\n".join([*body[1:-1], 'printf %s "$NOTE"'])],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == COMMON["environment"]["NOTE"]


def test_lifetime_ends_before_walltime_for_every_worker():
    _, body = lines("slurm", "#SBATCH", lifetime="25h")
    words = shlex.split(body[-1])
    lifetime = float(words[words.index("--lifetime") + 1].removesuffix("s"))
    stagger = float(words[words.index("--lifetime-stagger") + 1].removesuffix("s"))
    assert lifetime == 25 * 3600 and stagger > 0 and lifetime + stagger < 26.5 * 3600


def test_a_path_that_a_queue_would_misread_is_refused(tmp_path):
    config = {"kind": "slurm", **COMMON, **TIMED, "log_directory": str(tmp_path / "my logs")}
    with pytest.raises(clusters.ConfigError, match="cannot stand in a job script"):
        script(clusters.read(config))
    assert not (tmp_path / "my logs").exists()


def test_log_folders_are_private(tmp_path):
    script(
        clusters.read({"kind": "slurm", **COMMON, **TIMED, "log_directory": str(tmp_path / "a")})
    )
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_kubernetes_resource():
    given = {"kind": "kubernetes", "image": "me/dmkc:1", "workers": 3, "cores": 2, "memory": "4GiB"}
    spec = kubernetes_spec(clusters.read({**given, "environment": {"A": "b c"}}))
    # the operator's custom resource: worker.replicas, and pod specs of worker and scheduler whose
    # service forwards the two named ports
    assert (spec["apiVersion"], spec["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    worker = spec["spec"]["worker"]
    (container,) = worker["spec"]["containers"]
    assert worker["replicas"] == 3 and container["image"] == "me/dmkc:1"
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "4096Mi"}
    assert container["env"] == [{"name": "A", "value": "b c"}]
    assert container["args"][:4] == ["dask", "worker", "--name", "$(DASK_WORKER_NAME)"]
    (scheduler,) = spec["spec"]["scheduler"]["spec"]["containers"]
    named = {port["name"] for port in scheduler["ports"]}
    service = spec["spec"]["scheduler"]["service"]
    assert {port["targetPort"] for port in service["ports"]} == named
    assert service["type"] == "ClusterIP"
    assert yaml.safe_load(yaml.safe_dump(spec)) == spec
    adaptive = {k: v for k, v in given.items() if k != "workers"}
    adaptive = clusters.read({**adaptive, "adapt": {"minimum": 1, "maximum": 9}})
    assert kubernetes_spec(adaptive)["spec"]["worker"]["replicas"] == 1
