"""Commands that are killed, run out of disk, or meet another one on the same folder.

Whatever they leave can be read and is whole; taken up again or repeated, they end with the results
of an unbroken run.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import dmkc
from children import Command, context, hit, run_command
from commands import judged
from dmkc.cli.answers import read_answers
from dmkc.errors import UserError

ROWS, COLUMNS, CHUNK = 8000, 4, 1000
SECONDS = 60.0
WARM = 0.6
"""How long a command takes beside its first run, about."""
METHODS = ("mkc", "kmeans", "planes", "odm", "mkkm", "spectral", "consensus")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
ENDS = {signal.SIGKILL: (-9,), signal.SIGINT: (130, -2), signal.SIGTERM: (143, -15)}
PAIRS = (
    ("fit a", "fit b"),
    ("fit a", "fit b --force"),
    ("fit a --force", "fit b --force"),
    ("resume", "resume"),
    ("resume", "fit b --force"),
    ("fit b --force", "predict"),
    ("predict", "predict"),
    ("predict --force", "predict --force"),
    ("fit b --force", "info"),
    ("fit b --force", "status"),
)
QUESTION = re.compile(r"Do rows (\d+) and (\d+) belong together\?")


def draw(rng: Any, number: int, part: str) -> dict[str, Any]:
    """What is run, and when it is disturbed."""
    plan: dict[str, Any] = {"part": part, "method": METHODS[rng.integers(len(METHODS))]}
    if part == "kills":
        what = ("fit", "predict", "fit", "ask")[number % 4]
        kind = SIGNALS[rng.integers(len(SIGNALS))]
        more = {"share": float(rng.random()), "signal": int(kind)}
        return {**plan, **more, "group": f"{what}, {kind.name}", "what": what}
    if part == "disks":
        way = ("a small disk", "files that cannot grow")[number % 2]
        return {**plan, "group": way, "share": float(rng.random())}
    pair = PAIRS[number % len(PAIRS)]
    return {**plan, "group": " and ".join(pair), "pair": pair, "later": float(rng.random() * 0.4)}


def folder_in(folder: Path) -> Path:
    """The folder of a case, with rows in it."""
    if not (folder / "a.zarr").exists():
        for seed, name in enumerate(("a.zarr", "b.zarr")):
            rng = np.random.default_rng(seed)
            side = rng.random(ROWS) < 0.4
            X = rng.normal(size=(ROWS, COLUMNS)) + np.where(side, 1.5, -1.5)[:, None]
            zarr.create_array(store=folder / name, data=X, chunks=(CHUNK, COLUMNS))
    return folder


def play(plan: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What came of a case."""
    for entry in folder.iterdir():
        if entry.name.startswith(("run", "l.zarr", "answers", ".")):
            shutil.rmtree(entry, ignore_errors=True)
            entry.unlink(missing_ok=True)
    if plan["part"] == "kills":
        return {"fit": _killed_fit, "predict": _killed_predict, "ask": _killed_ask}[plan["what"]](
            plan, folder
        )
    return {"disks": _full_disk, "pairs": _pair}[plan["part"]](plan, folder)


def fit_words(folder: Path, out: Path, method: str, rows: str = "a") -> list[str]:
    small = [] if method in ("kmeans", "spectral", "consensus") else ["--rank", "15"]
    words = ["fit", str(folder / f"{rows}.zarr"), "--method", method, "--out", str(out), *small]
    report = [] if method == "mkc" else ["--no-report"]  # which takes a second
    return [*words, "--seed", "0", "--sample-rows", "500", "--quiet", *report]


def run(words: list[str], folder: Path, room: int | None = None) -> tuple[int | None, str]:
    return Command(words, folder / "said.txt", room).end(SECONDS)


@lru_cache
def whole(folder: Path, method: str, rows: str = "a") -> tuple[np.ndarray, float]:
    """The labels of an unbroken fit, and how long it takes."""
    out = folder / f"whole-{method}-{rows}"
    shutil.rmtree(out, ignore_errors=True)
    began = time.monotonic()
    code, said = run(fit_words(folder, out, method, rows), folder)
    if code != 0:
        raise RuntimeError(f"an unbroken fit of {method} ended with {code}: {said}")
    return labels_of(out / "labels.zarr"), time.monotonic() - began


def labels_of(path: Path) -> np.ndarray:
    return np.asarray(zarr.open_array(store=path, mode="r")[:])


def torn(out: Path, labels: np.ndarray) -> str:
    """What of a run that was disturbed is there and not whole."""
    with contextlib.suppress(FileNotFoundError):
        if not np.array_equal(labels_of(out / "labels.zarr"), labels):
            return "labels.zarr holds other labels"
    for name in ("run.json", "status.json", "metrics.json"):
        if (out / name).exists():
            try:
                json.loads((out / name).read_text())
            except ValueError:
                return f"{name} is cut off"
    if (out / "report.html").exists():
        if not (out / "report.html").read_text().rstrip().endswith("</html>"):
            return "report.html is cut off"
    if (out / "model.zarr").exists():
        try:
            dmkc.load(out / "model.zarr")
        except UserError as problem:
            return f"model.zarr cannot be read: {problem}"
    return ""


def _finished(out: Path, labels: np.ndarray, said: str) -> dict[str, Any]:
    """Whether a run that was taken up again is as if nothing had happened."""
    if not (out / "metrics.json").exists():
        return {"outcome": "wrong", "said": f"no metrics.json: {said[-300:]}"}
    left = [each.name for each in out.glob(".*")]
    problem = torn(out, labels) or (f"{left} are left" if left else "")
    return {"outcome": "wrong" if problem else "resumed", "said": problem}


def _taken_up(out: Path, words: list[str], folder: Path, labels: np.ndarray) -> dict[str, Any]:
    """Go on with a run that was disturbed."""
    problem = torn(out, labels)
    if problem:
        return {"outcome": "wrong", "said": problem}
    code, said = run(["status", str(out)], folder)
    if code not in (0, 2) or "Traceback" in said:
        return {"outcome": "leak", "said": f"status: {code} {said[-300:]}"}
    again = ["--resume" if word == "--out" else word for word in words]
    if (out / "run.json").exists():
        again = ["fit", "--resume", str(out), "--quiet"]
    code, said = run(again, folder)
    if code != 0:
        return {"outcome": "hang" if code is None else "wrong", "said": f"{code}: {said[-500:]}"}
    return _finished(out, labels, said)


def _struck(command: Command, plan: dict, seconds: float) -> tuple[bool, int | None, str]:
    kind = signal.Signals(plan["signal"])
    in_time = command.strike(WARM * plan["share"] * seconds, kind)
    code, said = command.end(SECONDS)
    return in_time and code != 0, code, said


def _killed_fit(plan: dict[str, Any], folder: Path) -> dict[str, Any]:
    labels, seconds = whole(folder, plan["method"])
    words = fit_words(folder, folder / "run", plan["method"])
    in_time, code, said = _struck(Command(words, folder / "said.txt"), plan, seconds)
    found = _ended(plan, code, said)
    if found is None:
        found = _taken_up(folder / "run", words, folder, labels)
    return found if in_time or found["outcome"] != "resumed" else {**found, "outcome": "missed"}


def _killed_predict(plan: dict[str, Any], folder: Path) -> dict[str, Any]:
    labels, _ = whole(folder, plan["method"])
    model = folder / f"whole-{plan['method']}-a"
    words = ["predict", str(model), str(folder / "a.zarr"), "--out", str(folder / "l.zarr")]
    began = time.monotonic()
    run([*words, "--quiet"], folder)
    seconds = time.monotonic() - began
    replace = bool(plan["share"] * 100 % 2 < 1)  # half of them replace labels, half are new
    if replace:
        words.append("--force")
    else:
        shutil.rmtree(folder / "l.zarr")
    in_time, code, said = _struck(Command(words, folder / "said.txt"), plan, seconds)
    found = _ended(plan, code, said)
    if found is not None:
        return found
    with contextlib.suppress(FileNotFoundError):
        if not np.array_equal(labels_of(folder / "l.zarr"), labels):
            return {"outcome": "wrong", "said": "labels are half written"}
    code, said = run([*words, "--force"], folder)
    if code != 0 or not np.array_equal(labels_of(folder / "l.zarr"), labels):
        return {"outcome": "wrong", "said": f"{code}: {said[-500:]}"}
    left = [each.name for each in folder.glob(".*.part")]
    if left:
        return {"outcome": "wrong", "said": f"{left} are left"}
    return {"outcome": "resumed" if in_time else "missed", "said": ""}


def _ended(plan: dict[str, Any], code: int | None, said: str) -> dict[str, Any] | None:
    """What is wrong with the end of a command that was sent a signal."""
    if code is None:
        return {"outcome": "hang", "said": f"signal {plan['signal']} did not end it"}
    if code not in (0, *ENDS[signal.Signals(plan["signal"])]) or "Traceback" in said:
        return {"outcome": "leak", "said": f"{code}: {said[-500:]}"}
    return None


def _killed_ask(plan: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Somebody answers questions until the command is killed, and goes on in another one."""
    expected, seconds = _asked(folder)
    answers = folder / "answers.csv"
    kind = signal.Signals(plan["signal"])
    code, given, said = converse(folder, answers, WARM * plan["share"] * seconds, kind)
    if code is None or "Traceback" in said:
        return {"outcome": "hang" if code is None else "leak", "said": said[-500:]}
    kept = list(read_answers(answers)) if answers.exists() else []
    # The last answer may have been on its way.
    if kept not in (given, given[:-1]) or given != expected[: len(given)]:
        return {"outcome": "wrong", "said": f"{len(given)} answers were given, {len(kept)} kept"}
    converse(folder, answers, SECONDS, kind)
    if list(read_answers(answers)) != expected:
        return {"outcome": "wrong", "said": "another conversation than the unbroken one"}
    return {"outcome": "missed" if code == 0 else "resumed", "said": f"{len(given)} answers"}


@lru_cache
def _asked(folder: Path) -> tuple[list, float]:
    began = time.monotonic()
    answers = folder / "answers-whole.csv"
    answers.unlink(missing_ok=True)
    converse(folder, answers, SECONDS, signal.SIGKILL)
    return list(read_answers(answers)), time.monotonic() - began


def converse(
    folder: Path, answers: Path, after: float, kind: signal.Signals
) -> tuple[int | None, list, str]:
    """Answer six questions, or as many as come before a signal: exit code, answers, last words."""
    known = list(read_answers(answers)) if answers.exists() else []
    count = 6 - len(known)
    words = ["select", str(folder / "ask.npy"), "--clusters", "2", "--seed", "0", "--quiet"]
    if not (folder / "ask.npy").exists():
        rng = np.random.default_rng(5)
        np.save(folder / "ask.npy", rng.normal(size=(150, 3)) + (np.arange(150) % 3)[:, None])
    words += ["--ask", str(max(count, 1)), "--answers", str(answers)]
    if count <= 0:
        return 0, known, ""
    theirs_in, ours_out = context.Pipe(duplex=False)
    ours_in, theirs_out = context.Pipe(duplex=False)
    (folder / "said.txt").unlink(missing_ok=True)
    process: Any = context.Process(
        target=run_command,
        args=(words, str(folder / "said.txt"), None, (theirs_in, theirs_out)),
    )
    process.start()
    theirs_in.close()
    theirs_out.close()
    end, text, given = time.monotonic() + after, "", list(known)
    os.set_blocking(ours_in.fileno(), False)
    while process.exitcode is None:
        process.join(0.02)
        if time.monotonic() > end:
            hit(process, kind)
            break
        with contextlib.suppress(BlockingIOError):
            text += os.read(ours_in.fileno(), 65536).decode()
        for i, j in QUESTION.findall(text):
            same = int(i) % 3 == int(j) % 3
            given.append((int(i), int(j), same))
            with contextlib.suppress(OSError):
                os.write(ours_out.fileno(), b"y\n" if same else b"n\n")
        text = text if QUESTION.search(text) is None else ""
    process.join(SECONDS)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None, given, "no end"
    said = folder / "said.txt"  # which a process that was hit early has not begun
    return process.exitcode, given, said.read_text() if said.exists() else ""


def _full_disk(plan: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A fit on a disk that is full, and again when there is room."""
    labels, _ = whole(folder, plan["method"])
    disk = folder / "run-disk"
    disk.mkdir()
    pages, largest = _needed(folder / f"whole-{plan['method']}-a")
    small = plan["group"] == "a small disk" and _mount(disk, int(plan["share"] * pages))
    words = fit_words(folder, disk / "run", plan["method"])
    try:
        code, said = run(words, folder, None if small else int(plan["share"] * largest))
        found = judged(code if code is not None else 99, said)
        if found["outcome"] not in ("done", "refused"):
            return found
        if code != 0 and "no space left" not in said:
            return {"outcome": "untrue", "said": said[-300:]}
        if small:
            _mount(disk, 1 << 26, "remount,")
        if code == 0:
            return {**_finished(disk / "run", labels, said), "outcome": "missed"}
        return _taken_up(disk / "run", words, folder, labels)
    finally:
        if small:
            subprocess.run(["umount", str(disk)], check=False)


def _needed(out: Path) -> tuple[int, int]:
    """Bytes of a disk that the results of a run take, and those of the largest file."""
    sizes = [each.stat().st_size for each in out.rglob("*")]
    return sum(4096 * -(-size // 4096) for size in sizes), max(sizes)


def _mount(disk: Path, size: int, how: str = "") -> bool:
    """A disk of a size in memory; False where only administrators may have one."""
    options = f"{how}size={max(size, 8192)}"
    words = ["mount", "-t", "tmpfs", "-o", options, "fuzz", str(disk)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def _pair(plan: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Two commands at once: both end well or with a sentence, and what is there fits together."""
    out = folder / "run"
    results = {rows: whole(folder, "kmeans", rows)[0] for rows in "ab"}
    _before(plan["pair"], folder, out)
    commands = []
    for number, words in enumerate(plan["pair"]):
        commands.append(Command(_words(words, folder, out), folder / f"said-{number}.txt"))
        time.sleep(plan["later"])  # the second begins somewhere inside the first
    for command in commands:
        code, said = command.end(SECONDS)
        found = judged(99 if code is None else code, said)
        if found["outcome"] not in ("done", "refused"):
            return {**found, "outcome": "hang" if code is None else found["outcome"]}
    if (folder / "l.zarr").exists() and not np.array_equal(
        labels_of(folder / "l.zarr"), results["a"]
    ):
        return {"outcome": "wrong", "said": "labels of two commands are mixed"}
    if not (out / "metrics.json").exists():
        if "predict" in " ".join(plan["pair"]) and not out.exists():
            return {"outcome": "done", "said": ""}
        return {"outcome": "wrong", "said": "no run is finished"}
    rows = Path(json.loads((out / "run.json").read_text())["words"][1]).stem
    X = zarr.open_array(store=folder / f"{rows}.zarr", mode="r")[:]
    model = np.asarray(dmkc.load(out / "model.zarr").predict(X))
    if not np.array_equal(model, results[rows]):
        return {"outcome": "wrong", "said": f"the run of {rows} holds another model"}
    found = _finished(out, results[rows], "")
    return {**found, "outcome": "done"} if found["outcome"] == "resumed" else found


def _before(pair: tuple[str, str], folder: Path, out: Path) -> None:
    """What is there before two commands meet."""
    if "resume" in pair:
        seconds = whole(folder, "kmeans", "a")[1]
        command = Command(fit_words(folder, out, "kmeans"), folder / "said.txt")
        command.strike(0.7 * seconds, signal.SIGKILL)
        command.end(SECONDS)
        if not (out / "run.json").exists():
            run(fit_words(folder, out, "kmeans"), folder)
    elif "fit a" not in pair[0]:
        shutil.copytree(folder / "whole-kmeans-a", out)
        order = json.loads((out / "run.json").read_text())
        order["words"] = fit_words(folder, out, "kmeans")
        (out / "run.json").write_text(json.dumps(order))
    if "predict --force" in pair:
        shutil.copytree(folder / "whole-kmeans-a" / "labels.zarr", folder / "l.zarr")


def _words(text: str, folder: Path, out: Path) -> list[str]:
    what, *more = text.split()
    if what == "fit":
        force = ["--force"] if "--force" in more else []
        return [*fit_words(folder, out, "kmeans", more[0]), *force]
    if what == "predict":
        model, rows = folder / "whole-kmeans-a", folder / "a.zarr"
        return ["predict", str(model), str(rows), "--out", str(folder / "l.zarr"), *more, "--quiet"]
    return ["fit", "--resume", str(out), "--quiet"] if what == "resume" else [what, str(out)]
