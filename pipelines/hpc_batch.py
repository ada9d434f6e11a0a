"""A fit in a batch queue that is sent again, and goes on, whenever the queue ends it.

    python pipelines/hpc_batch.py rows.zarr --clusters 3 --out run \\
        --cluster cluster_configs/slurm.yaml [further options of dmkc submit]
    python pipelines/hpc_batch.py --demo

Coordinator and workers are jobs of the queue (`dmkc submit`).  Where a walltime or a fault ends
them, the run is submitted again with --resume and goes on from its journal, with the same labels as
an unbroken run.  This script only watches: it may be stopped and started again with the same words.
--demo needs no queue: it plays one with processes of this machine, and ends the first job early.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from dmkc.resume.journal import NAME as JOURNAL

COMMANDS = {
    "sbatch": 'for last; do :; done\njob=$(mktemp "$0.XXXXXX")\ncp "$last" "$job"\n'
    'setsid bash "$job" > "$job.out" 2>&1 &\necho $!',
    "squeue": "for last; do :; done\n"
    'case $(ps -o stat= -p "$last") in "" | Z*) ;; *) echo RUNNING ;; esac',
    "scancel": 'for last; do :; done\ncase $last in *[!0-9]*) ;; *) kill -- "-$last" ;; esac',
}
"""A queue of this machine, in the words of SLURM: enough for the demonstration.

Scripts are copied, since whoever submits one may remove it at once.
"""


def dmkc(*words: str) -> str:
    """What a command of dmkc prints."""
    done = subprocess.run([sys.executable, "-m", "dmkc", *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"dmkc {' '.join(words)}\n{done.stderr.strip()}")
    return done.stdout.strip()


def status(run: Path) -> dict[str, Any]:
    return json.loads(dmkc("status", str(run), "--json"))


def submit(words: Sequence[str], run: Path) -> None:
    """Submit a new run, or one that ended early; leave one alone that is under way or finished."""
    if not (run / "run.json").exists():
        print("job", dmkc("submit", *words, "--out", str(run)), flush=True)
    elif status(run)["state"] in ("killed", "ended early"):
        print("job", dmkc("submit", "--resume", str(run)), "goes on with the run", flush=True)


def watch(run: Path, seconds: float, most: int) -> int:
    """Wait until the run is finished; submit it again at most so often.  Returns how often."""
    again = 0
    while True:
        state = status(run)["state"]
        if state == "finished":
            return again
        if state in ("killed", "ended early"):
            if again == most:
                raise SystemExit(f"The run was ended {most + 1} times; see dmkc logs {run}")
            again += 1
            submit((), run)
        time.sleep(seconds)


def end_early(run: Path, seconds: float = 300.0) -> None:
    """End the coordinator's job in the middle of its fit, as a walltime would."""
    end = time.monotonic() + seconds
    while not (run / JOURNAL).exists() or (run / JOURNAL).stat().st_size < 500:
        if time.monotonic() > end:
            raise SystemExit(f"The fit did not begin; see {run}")
        time.sleep(0.05)
    job = json.loads((run / "job.json").read_text())["job"]
    os.killpg(int(job), signal.SIGKILL)
    print("job", job, "is ended early", flush=True)


def demo(folder: Path) -> int:
    """A run in the queue that `COMMANDS` plays."""
    (folder / "bin").mkdir()
    for name, text in COMMANDS.items():
        (folder / "bin" / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    os.environ["PATH"] = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    config = {"kind": "slurm", "jobs": 1, "cores": 1, "memory": "1GiB", "walltime": "00:10:00"}
    config |= {"interface": "lo", "wait": "120s", "python": sys.executable}
    config |= {name: str(folder) for name in ("log_directory", "local_directory")}
    (folder / "queue.yaml").write_text(yaml.safe_dump(config))
    rows = folder / "rows.zarr"
    dmkc("datasets", "make", "ringnorm", "--rows", "200000", "--out", str(rows))
    fit = [str(rows), "--method", "mkc", "--clusters", "2", "--seed", "0", "--no-report"]
    run = folder / "run"
    submit([*fit, "--cluster", str(folder / "queue.yaml")], run)
    end_early(run)
    return watch(run, 0.2, 3)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("run"), help="folder of the run")
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two looks")
    parser.add_argument("--most", type=int, default=20, help="how often to submit it again")
    parser.add_argument("--demo", action="store_true", help="no queue needed; a minute or two")
    options, fit = parser.parse_known_args(words)
    if options.demo:
        with tempfile.TemporaryDirectory() as folder:
            again = demo(Path(folder))
    elif not fit and not (options.out / "run.json").exists():
        parser.error("name the rows and options of dmkc submit, or try --demo")
    else:
        submit(fit, options.out)
        again = watch(options.out, options.every, options.most)
    print(f"finished, submitted again {again} times")


if __name__ == "__main__":
    main()
