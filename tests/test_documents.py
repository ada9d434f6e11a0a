"""Small files that people write: plain values within bounds, and a sentence for all others."""

import os

import pytest

from dmkc import clusters, documents
from dmkc.clusters.values import ConfigError
from dmkc.documents import read_document
from dmkc.errors import UserError

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)
)
CHAIN = "a0: &a0 [x]\n" + "\n".join(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 2000))
HOSTILE = {
    "laughs.yaml": (LAUGHS, "more than"),
    "merged.yaml": (LAUGHS.replace("[*", "{<<: [*").replace("*]", "*]}"), "cannot be read"),
    "chain.yaml": (CHAIN, "nested deeper"),
    "itself.yaml": ("a: &a [*a]", "refers to itself"),
    "itself2.yaml": ("a: &a {b: *a}", "refers to itself"),
    "deep.yaml": ("[" * 100_000, "nested deeper"),
    "deep.json": ('{"a": ' + "[" * 100_000, "nested too deep"),
    "deep.toml": ("a = " + "[" * 100_000, "cannot be read"),
    "date.yaml": ("a: 2020-01-01", "date"),
    "time.yaml": ("a: 2020-01-01T00:00:00Z", "datetime"),
    "date.toml": ("a = 2020-01-01", "date"),
    "bytes.yaml": ("a: !!binary aGVsbG8=", "bytes"),
    "set.yaml": ("a: !!set {x, y}", "set"),
    "keys.yaml": ("1: a", "no text"),
    "inner.yaml": ("a: {[1, 2]: a}", "cannot be read"),
    "digits.yaml": ("a: " + "9" * 5000, "cannot be read"),
    "digits.json": ('{"a": ' + "9" * 5000 + "}", "cannot be read"),
    "digits.toml": ("a = " + "9" * 5000, "cannot be read"),
    "long.yaml": ("a: " + "9" * 4000, "beyond 2"),
    "sixty.yaml": ("a: 1" + ":1" * 2000 + ".5", "cannot be read"),
    "many.yaml": ("a: [" + "1," * 30_000 + "]", "more than"),
    "many.json": ("[" + "1," * 30_000 + "1]", "more than"),
    "two.yaml": ("a: 1\n---\nb: 2", "cannot be read"),
    "nul.yaml": ("a: \x00", "cannot be read"),
    "large.yaml": ("#" * (documents.MOST_BYTES + 1), "too large"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_documents_are_refused_in_a_sentence(tmp_path, name):
    text, words = HOSTILE[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=words) as caught:
        read_document(tmp_path / name)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


def test_plain_values_and_aliases_pass(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("base: &b {x: 1, y: [true, 2.5, null]}\nmore: {<<: *b, z: text}\n")
    found = read_document(path)
    assert found["more"] == {"x": 1, "y": [True, 2.5, None], "z": "text"}
    path.write_text("")
    assert read_document(path) is None


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_is_not_opened(tmp_path, make):
    make(tmp_path / "a.yaml")
    with pytest.raises(UserError, match="not a regular file"):
        read_document(tmp_path / "a.yaml")


SLURM = "kind: slurm\njobs: 2\ncores: 4\nwalltime: '01:00:00'\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: [slurm]", "unknown kind"),
        ("kind: {a: b}", "unknown kind"),
        ("kind: 2020-01-01", "date"),
        ("&a {kind: local, workers: *a}", "refers to itself"),
        (LAUGHS, "more than"),
        (SLURM + "memory: 1e400GiB", "amount such as"),
        (SLURM + "memory: 1e200GiB", "no machine has"),
        ("kind: threads\nmemory: inf", "amount such as"),
        ("kind: threads\nmemory: [4GiB]", "amount such as"),
        ("kind: local\nworkers: 10000000000", "at most"),
        ("kind: local\nworkers: " + "9" * 5000, "cannot be read"),
        (SLURM.replace("01:00:00", "9" * 30 + "-01:00:00") + "memory: 4GiB", "walltime"),
        (SLURM + "memory: 4GiB\nlifetime: " + "9" * 400 + "s", "lifetime"),
        (SLURM + "memory: 4GiB\nname: [a]", "name"),
    ],
)
def test_cluster_configs_of_strangers(tmp_path, text, words):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        clusters.read(path)
