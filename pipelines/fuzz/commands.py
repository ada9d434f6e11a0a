"""Command lines, documents and files of rows that somebody got wrong, or means ill.

A command ends with 0, or with 1 or 2 and one line that says why: never with a traceback, and never
with more memory or time than it deserves.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shutil
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import zarr
from numcodecs import Zstd

from dmkc.cli import main
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.datasets import make_blobs
from models import DAMAGES, REPLACED, alter, damage

SECONDS = 30.0
GROWTH = 1024
QUICK = ("--seed", "0", "--no-report", "--quiet")
COMMANDS = (
    ("fit", "x.npy", "--out", "new", *QUICK),
    ("fit", "x.csv", "--out", "new", "--method", "kmeans", "--columns", "a,b", *QUICK),
    ("fit", "x.zarr", "--out", "new", "--params", "p.yaml", "--truth", "y.npy", *QUICK),
    ("fit", "s.npz", "--out", "new", "--rank", "20", "--tol", "1e-2", *QUICK),
    ("fit", "x.parquet", "--out", "new", "--kernels", "linear,gaussian:0.5", *QUICK),
    ("fit", "--view", "a=x.npy", "--view", "b=x.csv", "--out", "new", *QUICK),
    ("fit", "--resume", "run", "--quiet"),
    ("predict", "run", "x.npy", "--out", "l.zarr", "--quiet"),
    ("predict", "run/model.zarr", "x.csv", "--out", "l.zarr", "--force"),
    ("evaluate", "run", "y.npy", "--json"),
    ("evaluate", "y.npy", "y.csv::y"),
    ("info", "run", "--json"),
    ("info", "x.zarr"),
    ("status", "run", "--json"),
    ("logs", "run"),
    ("cancel", "run"),
    ("plan", "x.npy", "--clusters", "2", "--json", "plan.json"),
    ("select", "x.npy", "--clusters", "2", "--seed", "0", "--quiet", "--answers", "a.csv"),
    ("datasets", "list"),
    ("datasets", "make", "rings", "--rows", "300", "--out", "d.zarr"),
    ("cluster", "check", "c.yaml"),
    ("completion", "bash"),
)
NEVER = ("--debug", "--start", "fetch", "submit", "demo", "--scheduler", "--ask")
"""Words that show tracebacks when asked to, begin something long, or wait for somebody."""
VALUES = (
    *("", "-1", "0", "2", "2.5", "1e3", "1e400", "nan", "inf", "9" * 400, "x" * 5000, "nonsense"),
    *("a,b", ",", "::", "a=b", "=", "x.npy", "x.csv::a", "nowhere.npy", ".", "/", "/dev/null"),
    *("run", "p.yaml", "c.yaml", "y.npy", "broken.npy", "broken.zarr", "text.csv", "empty.csv"),
    *("http://127.0.0.1:1/x.zarr", "\x1b[31m", "ü", "caf\udce9", "--", "--out", "-h"),
)
FRAGMENTS = (
    *("[", "{", "&a [*a]", "2020-01-01", "!!python/object:os.system", "9" * 5000, "1e400", ".nan"),
    *("[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]", "{a: {b: {c: 1}}}", "null", "true"),
    *("-1", "0", "'x'", "[gaussian, linear]", "{kind: gaussian}", "~/nowhere", "1 MiB", "1e400GiB"),
    *('"$(touch hacked)"', "'; touch hacked'", '"a\\nb"', "\t", "\x00", "|\n  text", "0x10", "1_0"),
)
LINE = re.compile(r"^dmkc: (error|failed): .*[.?!)]$")
KINDS_OF_ROWS = ("zarr damaged", "zarr forged", "packed bomb", "npy forged", "npz damaged", "table")


def draw(rng: Any, number: int, part: str) -> dict[str, Any]:
    """A command line, or a document or file of rows that one is given."""
    return {"commands": _command, "documents": _document, "rows": _rows}[part](rng, number)


def _command(rng: Any, number: int) -> dict[str, Any]:
    words = list(COMMANDS[number % len(COMMANDS)])
    for _ in range(1 + int(rng.random() < 0.3)):
        words = _mutated(words, rng)
    known = words[:1] and words[0] in {command[0] for command in COMMANDS}
    return {"group": words[0] if known else "other", "words": words}


def _mutated(words: list[str], rng: Any) -> list[str]:
    """One word lost, doubled, moved, mistyped or replaced, or an option more."""
    place = int(rng.integers(len(words))) if words else 0
    place = max(place, int(rng.random() < 0.9 and len(words) > 1))  # other commands seldom
    word = words[place] if words else ""
    value = VALUES[rng.integers(len(VALUES))]
    choice = rng.choice(["lose", "double", "move", "mistype", "replace", "option"], p=_SHARES)
    if choice == "lose":
        return words[:place] + words[place + 1 :]
    if choice == "double":
        return [*words[:place], word, *words[place:]]
    if choice == "move":
        return [*words[:place], *words[place + 1 :], word]
    if choice == "mistype" and word:
        at = int(rng.integers(len(word)))
        return [*words[:place], word[:at] + word[at + 1 :], *words[place + 1 :]]
    if choice == "option" and words[:1] and words[0] in ("fit", "plan", "select"):
        return [*words, *_option(rng, value)]
    return [*words[:place], value, *words[place + 1 :]]


_SHARES = (0.1, 0.05, 0.05, 0.15, 0.3, 0.35)


def _option(rng: Any, value: str) -> tuple[str, str]:
    """An option of some method with a value of its kind, or any value."""
    cls = list(ESTIMATORS.values())[rng.integers(len(ESTIMATORS))]
    names = [name for name in cls.parameters() if name not in ("client", "verbose")]
    name = names[rng.integers(len(names))]
    kind = cls.parameters()[name].kind
    fine = (*kind.words, "1", "3", "0.5", "none")
    if rng.random() < 0.6:
        value = fine[rng.integers(len(fine))]
    return f"--{name.replace('_', '-')}", value


def _document(rng: Any, number: int) -> dict[str, Any]:
    """Lines with values that are none, or bytes that are no document."""
    config = number % 2
    text = (PARAMS, CONFIGS[rng.integers(len(CONFIGS))])[config]
    lines = text.splitlines()
    fragment = FRAGMENTS[rng.integers(len(FRAGMENTS))]
    place = int(rng.integers(len(lines)))
    choice = rng.random()
    if choice < 0.7:
        lines[place] = f"{lines[place].partition(':')[0]}: {fragment}"
    elif choice < 0.8:
        lines.insert(place, fragment)
    elif choice < 0.9:
        at = int(rng.integers(len(lines[place])))
        lines[place] = lines[place][:at] + "\x07\u2028{:"[rng.integers(4)] + lines[place][at:]
    else:
        lines = lines[:place] * 2
    words = (
        ["fit", "x.npy", "--out", "new", "--params", "hostile.yaml", *QUICK],
        ["cluster", "check", "hostile.yaml"],
    )[config]
    return {
        "group": ("parameters", "cluster configs")[config],
        "words": words,
        "file": ["hostile.yaml", "\n".join(lines)],
    }


PARAMS = """\
method: mkc
n_clusters: 2
kernels: [linear, "gaussian:0.5"]
scale: standard
C: 2.0
balance: default
rank: 20
tol: 1e-2
random_state: 0
init: k-means
"""
CONFIGS = (
    "kind: local\nworkers: 2\nthreads: 1\nmemory: 1GiB\ndashboard: off\ntls: temporary\n",
    'kind: slurm\nqueue: normal\njobs: 4\ncores: 8\nmemory: "32GiB"\nwalltime: "02:00:00"\n'
    'lifetime: "110 min"\nprologue: ["module load python"]\ncoordinator: {cores: 1}\n',
    "kind: ssh\nhosts: [node0, node1]\ntls: ~/certs\n",
    "kind: existing\naddress: tcp://127.0.0.1:8786\ntimeout: 1s\n",
    'kind: sge\njobs: 2\ncores: 2\nmemory: "2GiB"\nwalltime: "01:00:00"\ntrusted_network: true\n',
)


def _rows(rng: Any, number: int) -> dict[str, Any]:
    kind = KINDS_OF_ROWS[number % len(KINDS_OF_ROWS)]
    return {"group": kind, "words": [], "hostile": kind, "seed": int(rng.integers(2**31))}


@lru_cache
def _prepared(folder: Path) -> None:
    """Files of every kind, and a run."""
    os.chdir(folder)
    X, y = make_blobs(60, 4, 2, seed=3)
    np.save("x.npy", X)
    np.save("y.npy", y)
    names = list("abcd")
    pd.DataFrame(X, columns=names).to_csv("x.csv", index=False)
    pd.DataFrame(X, columns=names).to_parquet("x.parquet")
    pd.DataFrame({"y": y}).to_csv("y.csv", index=False)
    sp.save_npz("s.npz", sp.csr_array(np.where(X > 0, X, 0.0)))
    zarr.create_array(store="x.zarr", data=X, chunks=(20, 4), overwrite=True)
    Path("p.yaml").write_text(PARAMS)
    Path("c.yaml").write_text(CONFIGS[1])
    Path("a.csv").write_text("0,2,yes\n0,1,no\n")
    Path("broken.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr'")
    Path("broken.zarr").mkdir(exist_ok=True)
    Path("broken.zarr/zarr.json").write_text("{")
    Path("text.csv").write_text("a,b\nx,y\n")
    Path("empty.csv").write_text("")
    words = ["fit", "x.npy", "--out", "run", "--method", "kmeans", *QUICK]
    if not Path("run").exists() and _run(words, folder)[0] != 0:
        raise RuntimeError("the first run failed")


def play(plan: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run a command and judge its end."""
    _prepared(folder)
    for name in ("new", "l.zarr", "d.zarr", "hostile.zarr"):
        shutil.rmtree(folder / name, ignore_errors=True)
    words, what = plan["words"], ""
    if set(words) & set(NEVER):
        return {"outcome": "skipped", "said": "a word that is not tried"}
    if "file" in plan:
        Path(plan["file"][0]).write_text(plan["file"][1])
    if "hostile" in plan:
        name, what = hostile_rows(plan["hostile"], np.random.default_rng(plan["seed"]))
        words = ["fit", name, "--method", "kmeans", "--out", "new", *QUICK]
    code, said = _run(words, folder)
    if Path("hacked").exists():
        Path("hacked").unlink()
        return {"outcome": "wrong", "said": "a config has run a command"}
    found = judged(code, said)
    return {**found, "said": f"{what}: {found['said']}"} if what else found


def judged(code: int, said: str) -> dict[str, Any]:
    """Whether an exit code and what was said go together."""
    if "Traceback (most" in said:
        return {"outcome": "leak", "said": said[-800:]}
    if code == 0:
        return {"outcome": "done", "said": ""}
    last = said.rstrip().splitlines()[-1:] or [""]
    own = [line for line in said.splitlines() if LINE.match(line)]
    if code == 2 and not own and "usage: dmkc" in said:  # no command at all: the help
        return {"outcome": "refused", "said": "help"}
    if code not in (1, 2, 130) or len(own) != 1 or own != last or not last[0].isprintable():
        return {"outcome": "unclear", "said": f"{code}: {said[-500:]}"}
    if re.match(r"dmkc: failed: \w*(Error|Exception|Warning|Exit): ", last[0]):
        return {"outcome": "leak", "said": last[0][:500]}
    return {"outcome": "refused", "said": last[0][:500]}


def _run(words: list[str], folder: Path) -> tuple[int, str]:
    """Exit code and words of a command in this process."""
    os.chdir(folder)
    said = folder / "said.txt"
    kept = os.dup(1), os.dup(2), sys.stdout, sys.stderr
    with open(said, "w", errors="surrogateescape") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
        sys.stdout = sys.stderr = stream
        try:
            code = main(words)
        finally:
            stream.flush()
            sys.stdout, sys.stderr = kept[2:]
            for number in (1, 2):
                os.dup2(kept[number - 1], number)
                os.close(kept[number - 1])
    return code, said.read_text(errors="replace")


def hostile_rows(kind: str, rng: Any) -> tuple[str, str]:
    """A file of rows that is not what it seems; its name and what was done to it."""
    if kind.startswith("zarr"):
        return _hostile_zarr(kind, rng)
    if kind == "packed bomb":
        return _bomb(rng)
    if kind == "npy forged":
        content = bytearray(Path("x.npy").read_bytes())
        shape = (b"(60, 4)", b"(999999999999, 4)", b"(60, 99999999)", b"(-6, 4)")[rng.integers(4)]
        content = content.replace(b"(60, 4), }" + b" " * (len(shape) - 7), shape + b", }")
        Path("hostile.npy").write_bytes(content)
        return "hostile.npy", shape.decode()
    name = ("s.npz", ("x.csv", "x.parquet")[rng.integers(2)])[kind == "table"]
    target = Path(f"hostile{Path(name).suffix}")
    target.unlink(missing_ok=True)
    shutil.copy(name, target)
    what = DAMAGES[rng.integers(len(DAMAGES))]
    if what != "removed":
        other = Path("other")
        shutil.copy("x.npy", other)
        damage(target, other, what, rng)
    return str(target), what


def _hostile_zarr(kind: str, rng: Any) -> tuple[str, str]:
    path = Path("hostile.zarr")
    shutil.copytree("x.zarr", path)
    if kind == "zarr damaged":
        there = sorted(each for each in path.rglob("*") if each.is_file())
        choices = (*DAMAGES, *REPLACED)
        what = choices[rng.integers(len(choices))]
        one = there[rng.integers(len(there))]
        damage(one, there[0], what, rng)
        return str(path), f"{one.relative_to(path)} {what}"
    meta = json.loads((path / "zarr.json").read_text())
    choice = int(rng.integers(5))
    if choice == 0:
        meta["shape"][int(rng.integers(2))] = (10**7, 10**10, 10**18)[rng.integers(3)]
        what = f"shape {meta['shape']}"
    elif choice == 1:
        large = [(10**6, 10**9, 10**12)[rng.integers(3)], 4]
        meta["shape"] = meta["chunk_grid"]["configuration"]["chunk_shape"] = large
        what = f"one chunk {large}"
    elif choice == 2:
        packed = Zstd().encode(np.zeros(1 << 28, np.uint8)) if rng.random() < 0.5 else b""
        frames = packed * int(rng.integers(1, 20))
        chunk = next(each for each in sorted((path / "c").rglob("*")) if each.is_file())
        chunk.write_bytes(frames)
        what = f"a chunk of {len(frames)} bytes that unpack to many"
    else:
        what = alter(meta, rng)
    with contextlib.suppress(ValueError):
        (path / "zarr.json").write_text(json.dumps(meta))
    return str(path), what


def _bomb(rng: Any) -> tuple[str, str]:
    """A packed table of little content and enormous size."""
    line = (b"1,2\n", b"\n", b"0,", b" ", b"1.5,2.5,3.5,4.5\n")[rng.integers(5)]
    size = (1 << 20, 1 << 33)[int(rng.random() < 0.5)]
    member = gzip.compress(line * ((1 << 22) // len(line)), compresslevel=6)
    Path("hostile.csv.gz").write_bytes(member * max(1, size >> 22))
    return "hostile.csv.gz", f"{line!r} up to {size} bytes"
