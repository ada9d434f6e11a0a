"""Cluster configs: what is accepted, what is refused and with which words."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dmkc import clusters
from dmkc.clusters.schema import KINDS

SHIPPED = sorted((Path(__file__).parents[2] / "cluster_configs").glob("*.yaml"))
SLURM = {"kind": "slurm", "jobs": 2, "cores": 2, "memory": "4GiB", "walltime": "01:00:00"}


def refused(config, *words):
    with pytest.raises(clusters.ConfigError) as caught:
        clusters.read(config)
    text = str(caught.value)
    assert text.endswith((".", "?")) and "\n" not in text
    for word in words:
        assert word in text


def test_every_kind_has_a_file_and_every_file_a_kind():
    assert {path.stem for path in SHIPPED} == set(KINDS)
    for path in SHIPPED:
        config = clusters.read(path)
        assert config.kind == path.stem
        assert set(config) == set(KINDS[config.kind])


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_commented_keys_of_the_files_are_keys(path):
    """What a user uncomments is known and valid, one at a time."""
    text = path.read_text()
    written = yaml.safe_load(text)
    found = 0
    for line in text.splitlines():
        name = line.removeprefix("# ").partition(":")[0]
        if not line.startswith("# ") or name not in KINDS[path.stem]:
            continue
        given = yaml.safe_load(line.removeprefix("# "))
        without = {"adapt": ("jobs", "workers"), "scheduler_file": ("address",)}.get(name, ())
        changed = {k: v for k, v in {**written, **given}.items() if k not in without}
        assert clusters.read(changed)[name] is not None
        found += 1
    assert found >= 2


def test_unknown_keys_and_kinds_are_refused_with_a_hint():
    refused({"kind": "slrum"}, "unknown kind 'slrum'", "Did you mean slurm?")
    refused({}, "names no kind", "threads, local")
    refused({"kind": "local", "worker": 2}, "no key worker", "Did you mean workers?")
    refused({"kind": "local", "zzz": 2}, "no key zzz", "Known are")
    refused({**SLURM, "coordinator": {"core": 1}}, "coordinator.core", "Did you mean cores?")
    refused({**SLURM, "tls": {"ca": "x"}}, "no key tls.ca")
    refused([1], "names and values")
    refused({"kind": "local", 3: 4}, "names and values")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("jobs", 0, "at least 1"),
        ("jobs", True, "whole number"),
        ("jobs", "2", "whole number"),
        ("cores", 1.5, "whole number"),
        ("memory", 32, "4GiB"),
        ("memory", "much", "4GiB"),
        ("memory", "32", "too little"),
        ("walltime", 5400, "quotes"),
        ("walltime", "90 min", "quotes"),
        ("walltime", "00:00:30", "a minute"),
        ("lifetime", "110", "10 min"),
        ("lifetime", "59 min", "hand over"),
        ("dashboard", "all_rows", "127.0.0.1:8787"),
        ("dashboard", "127.0.0.1:99999", "127.0.0.1:8787"),
        ("trusted_network", "yes", "true or false"),
        ("environment", {"A-B": "1"}, "no name of an environment variable"),
        ("environment", {"A": "x\ny"}, "one line"),
        ("environment", ["A=1"], "names and values"),
        ("modules", "python", "list"),
        ("adapt", {"minimum": 3, "maximum": 1}, "below"),
        ("adapt", 4, "minimum and maximum"),
        ("local_directory", "scratch", "full path"),
        ("local_directory", "/tmp/$(id)", "variable"),
        ("local_directory", "$TMPDIR/$(id)", "variable"),
        ("local_directory", "$TMPDIR/a b", "variable"),
    ],
)
def test_values_are_checked(name, value, words):
    config = {**SLURM, name: value}
    if name == "adapt":
        del config["jobs"]
    refused(config, name, words)


@pytest.mark.parametrize("name", ["queue", "account", "interface", "name"])
@pytest.mark.parametrize(
    "value", ["a b", "a;b", "a\nb", "$(id)", "`id`", "a'b", 'a"b', "a|b", "a&b", "-x", "", "a\x00b"]
)
def test_words_of_a_job_script_cannot_smuggle(name, value):
    refused({**SLURM, name: value}, name)


@pytest.mark.parametrize(
    "value", ["--a\n#SBATCH --b", "--a=`id`", "--a=$(id)", "--a;id", "rm -rf x", "--a\\", "--a\rb"]
)
def test_directives_that_are_more_than_options_are_refused(value):
    refused({**SLURM, "directives": [value]}, "directives[0]")


def test_directives_of_the_queues_manuals_pass():
    wanted = ["--gres=gpu:1", "--constraint=[rack1|rack2]", '-R "select[mem>40000]"', "-pe smp 8"]
    assert clusters.read({**SLURM, "directives": wanted})["directives"] == tuple(wanted)


@pytest.mark.parametrize("key", ["Executable", "queue", "a = b\nc", "include : id |", "a b"])
def test_attributes_of_htcondor_cannot_replace_the_job(key):
    given = {"kind": "htcondor", "jobs": 1, "cores": 1, "memory": "1GiB", "disk": "1GiB"}
    refused({**given, "directives": {key: "x"}}, "may not be set")
    refused({**given, "directives": {"Rank": "a\nb"}}, "one line")
    refused({**given, "directives": {"Rank": "$ENV(HOME)"}}, "$")


def test_choices_that_exclude_each_other():
    refused({**SLURM, "adapt": {"minimum": 1, "maximum": 2}}, "exclude each other")
    without = {k: v for k, v in SLURM.items() if k != "jobs"}
    refused(without, "one of jobs and adapt")
    refused({"kind": "existing"}, "one of address and scheduler_file")
    refused({"kind": "existing", "address": "somewhere"}, "tcp://host:8786")
    refused({"kind": "slurm"}, "is missing")


def test_the_loader_runs_nothing(tmp_path):
    path = tmp_path / "evil.yaml"
    marker = tmp_path / "ran"
    path.write_text(f"kind: !!python/object/apply:os.system ['touch {marker}']\n")
    refused(path, "cannot be read as YAML")
    assert not marker.exists()
    path.write_bytes(b"\xff\xfe\x00")
    refused(path, "not a text file")
    path.write_text("kind: [\n")
    refused(path, "cannot be read as YAML")
    path.write_text("#" * (2 << 20))
    refused(path, "too large")
    with pytest.raises(FileNotFoundError):
        clusters.read(tmp_path / "absent.yaml")


def test_paths_are_relative_to_the_file(tmp_path):
    path = tmp_path / "here.yaml"
    path.write_text(yaml.safe_dump({**SLURM, "log_directory": "logs", "tls": "certs"}))
    config = clusters.read(path)
    assert config["log_directory"] == str(tmp_path / "logs")
    assert config["tls"] == str(tmp_path / "certs")
    assert clusters.read(dict(config.given))["log_directory"] == str(tmp_path / "logs")


def test_a_config_that_was_read_is_read_again_as_it_is():
    config = clusters.read(SLURM)
    assert clusters.read(config) is config
    assert config["memory"] == 4 << 30 and config["walltime"] == 3600
