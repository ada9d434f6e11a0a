"""Play a new user with a messy table: every step from the shell and from Python, checked.

    python pipelines/new_user.py                     2,000 rows, in an empty folder
    python pipelines/new_user.py --rows 2000000      the same with more
    python pipelines/new_user.py --page              both, and docs/results/new-user.md

The table has ids, categories, dates, truth values, missing values, a constant column, a column with
an odd name and three planted groups.  A step is right if it ends as it should, says what it should,
and what it writes can be joined to the rows and finds the groups.  The script ends with what was
wrong, and with 1 if anything was.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.metrics import adjusted_rand_score

from new_user_walk import Done, Walk, customers

sys.path.insert(0, str(Path(__file__).resolve().parent / "benchmarks"))
from common import one_by_one, table, write

ROWS, MANY_ROWS = 2_000, 2_000_000
SHOWN_LINES = 40
"""Lines of what a step prints that the page shows."""
BY_ID = "--index-column customer_id"
WITHOUT_TRUTH = "--exclude segment,country"
FIXED = "--seed 0 --no-report --quiet"
MKC = "--method mkc --clusters 3"
FILLED = f"{BY_ID} {WITHOUT_TRUTH} --impute-missing"
THREE = f"fit customers.csv {FILLED} {MKC} {FIXED}"


def look(walk: Walk) -> None:
    """What is in the files?"""
    for name in ("customers.csv", "customers.parquet"):
        walk.sh(
            f"look at {name}",
            f"info {name}",
            "left out: id-like",
            "left out: constant",
            "days since 1970",
            "4 columns of 0 and 1",
            "--drop-missing or --impute-missing",
        )


def fits(walk: Walk) -> None:
    """From the table to labels, in different ways."""
    walk.sh(
        "fit without saying what to do about gaps",
        "fit customers.csv --out gaps --quiet",
        "have missing values (age",
        "--drop-missing",
        code=2,
    )
    walk.sh(
        "fit, and let it choose",
        f"fit customers.csv {FILLED} --seed 0 --out auto --quiet",
        "verdict",
        "currency",
        check=lambda _: (
            walk.labels("auto/labels.csv", dropped=False, groups=False)
            + _is_there(walk, "auto/report.html")
        ),
    )
    walk.sh(
        "fit three clusters, with means for gaps",
        f"{THREE} --out imputed",
        check=lambda _: walk.labels("imputed/labels.csv", dropped=False),
    )
    walk.sh(
        "fit three clusters of Parquet, without rows with gaps, beside the truth",
        f"fit customers.parquet {BY_ID} --exclude country --drop-missing {MKC} {FIXED}"
        " --truth segment --out dropped",
        "rows dropped",
        "adjusted_rand_index",
        check=lambda _: walk.labels("dropped/labels.parquet", dropped=True),
    )
    walk.sh(
        "use a column that was left out, and name the rows by their numbers",
        f"fit customers.csv {WITHOUT_TRUTH} --include currency --impute-missing {MKC} {FIXED}"
        " --out included",
        check=lambda _: _numbered(walk, "included/labels.csv"),
    )


def new_rows(walk: Walk) -> None:
    """Labels of the same rows by the stored model, in every form."""
    for name in ("p.csv", "p.parquet"):
        walk.sh(
            f"predict to {name}",
            f"predict imputed customers.csv --out {name} --quiet",
            check=lambda _, name=name: (
                walk.labels(name, dropped=False) + _same(walk, "imputed/labels.csv", name)
            ),
        )
    walk.sh(
        "predict, beside all columns of the input",
        "predict dropped customers.parquet --out all.csv --append --quiet",
        check=lambda _: walk.labels("all.csv", dropped=True) + _whole(walk, "all.csv"),
    )
    walk.sh(
        "predict, with a category that the fit had not seen",
        "predict imputed strange.csv --out strange-labels.csv",
        "values that have no column of their own ('gift')",
    )
    walk.sh(
        "evaluate against the truth, by id",
        "evaluate p.parquet customers.csv::segment --json",
        check=lambda said: _evaluated(walk, said, "p.parquet"),
    )


def choices(walk: Walk) -> None:
    """Choosing without labels, and what a fit will take."""
    walk.sh(
        "choose parameters, and keep the choice",
        f"select customers.csv {FILLED} --clusters 3 --seed 0 --out choice.yaml --quiet",
        "confidence",
        check=lambda _: _is_there(walk, "choice.yaml"),
    )
    walk.sh(
        "fit what was chosen",
        f"fit customers.csv {FILLED} --params choice.yaml --no-report --quiet --out chosen",
        check=lambda _: walk.labels("chosen/labels.csv", dropped=False, groups=False),
    )
    walk.sh(
        "be asked about pairs of rows",
        f"select customers.csv {FILLED} --clusters 3 --seed 0 --quiet --ask 3 --answers pairs.csv",
        "belong together?",
        typed="yes\nno\nskip\n",
        check=lambda _: _is_there(walk, "pairs.csv"),
    )
    walk.sh(
        "plan a fit",
        f"plan customers.parquet {FILLED} {MKC} --quiet",
        "expected time",
        "suggested walltime",
    )


def ends(walk: Walk) -> None:
    """A run that is killed, and one that is finished."""
    walk.killed("kill a fit", f"{THREE} --out killed", "killed")
    walk.sh(
        "go on with it",
        "fit --resume killed --quiet",
        check=lambda _: _same(walk, "imputed/labels.csv", "killed/labels.csv"),
    )
    walk.sh("ask how a finished run is doing", "status killed", "finished")


def mistakes(walk: Walk) -> None:
    """Every one gets one sentence that says what to do."""
    fit = "fit customers.csv --out never"
    walk.sh("mistype an option", f"{fit} --clustres 3", "did you mean --clusters?", code=2)
    walk.sh("mistype a command", "fitt customers.csv", "did you mean fit?", code=2)
    walk.sh("mistype a method", f"{fit} --method kmean", "kmeans", code=2)
    walk.sh("mistype a column", f"{fit} --exclude segmnt", "segment", code=2)
    walk.sh("name a file that is not there", "fit custmers.csv --out x", code=2)
    walk.sh(
        "predict rows without a column of the fit",
        "predict imputed fewer.csv --out fewer-labels.csv",
        "visits",
        code=2,
    )


PIPELINE = """
import pandas as pd
from sklearn.pipeline import make_pipeline
import dmkc

customers = pd.read_csv("customers.csv", index_col="customer_id")
table = customers.drop(columns=["segment", "country"])
columns = dmkc.TableColumns(missing="impute")
model = dmkc.MultipleKernelClustering(3, random_state=0)
pipeline = make_pipeline(columns, model).fit(table)
print(list(columns.get_feature_names_out()))
print(model)
columns.keep_in(model).save("python.zarr")
again = dmkc.load("python.zarr")
assert again.predict(table).equals(model.labels_)
assert pipeline.predict(table).equals(model.labels_)
assert list(model.transform(table.head()).columns) == list(model.get_feature_names_out())
table.loc[table.index[model.medoid_indices_]].to_csv("typical.csv")
customers.join(model.labels_.rename("cluster")).to_csv("joined.csv")
"""

CLUSTER = """
import pandas as pd
import dmkc
from dmkc.report import write_report

customers = pd.read_csv("customers.csv", index_col="customer_id")
found = dmkc.cluster(customers, missing="impute", exclude=["segment", "country"], random_state=0)
print(found)
print(found.predict(customers).value_counts().to_dict())
found.labels_.rename("cluster").to_csv("found.csv")
write_report(found, customers, "python.html", title="Customers")
"""


def in_python(walk: Walk) -> None:
    """The same from Python."""
    walk.python(
        "columns and a clusterer in a pipeline of scikit-learn",
        PIPELINE,
        lambda _: walk.labels("joined.csv", dropped=False) + _typical(walk),
    )
    walk.python(
        "cluster a frame in one call, and write its report",
        CLUSTER,
        lambda _: (
            walk.labels("found.csv", dropped=False, groups=False) + _is_there(walk, "python.html")
        ),
    )


STEPS = (look, fits, new_rows, choices, ends, mistakes, in_python)


def _is_there(walk: Walk, name: str) -> list[str]:
    path = walk.place / name
    return [] if path.is_file() and path.stat().st_size else [f"{name} was not written"]


def _read(walk: Walk, name: str) -> pd.DataFrame:
    path = walk.place / name
    if path.suffix == ".csv":
        return pd.read_csv(path)
    found = pd.read_parquet(path)
    return found if "customer_id" in found.columns else found.reset_index()


def _numbered(walk: Walk, name: str) -> list[str]:
    """Labels named by the numbers of rows."""
    found = _read(walk, name)
    if list(found["row"]) != list(range(len(walk.table))):
        return ["rows are not named by their numbers"]
    score = adjusted_rand_score(walk.table["segment"], found["cluster"])
    return [] if score > 0.9 else [f"the adjusted Rand index is {score:.3f}"]


def _same(walk: Walk, one: str, other: str) -> list[str]:
    """Whether two files give every id the same label."""
    a, b = (_read(walk, name).set_index("customer_id")["cluster"] for name in (one, other))
    differ = int((a != b.reindex(a.index)).sum())
    return [f"{differ} labels of {other} are not those of {one}"] if differ else []


def _whole(walk: Walk, name: str) -> list[str]:
    """Whether a table has all columns of the input, cell for cell."""
    found = _read(walk, name)
    for column in walk.table.columns:
        there, given = found[column].astype(str), walk.table[column].astype(str)
        blank = walk.table[column].isna()
        if not found[column].isna().equals(blank) or not (there[~blank] == given[~blank]).all():
            return [f"the column {column} is not that of the input"]
    return []


def _evaluated(walk: Walk, said: str, name: str) -> list[str]:
    """Whether an evaluation agrees with scikit-learn's."""
    found = json.loads(said[said.index("{") :])["metrics"]["adjusted_rand_index"]
    labels = _read(walk, name).set_index("customer_id")["cluster"]
    own = adjusted_rand_score(walk.truth, labels.reindex(walk.truth.index))
    return [] if abs(found - own) < 1e-9 else [f"it says {found:.6f}, scikit-learn {own:.6f}"]


def _typical(walk: Walk) -> list[str]:
    """Whether there is a typical customer of each of the planted groups."""
    ids = _read(walk, "typical.csv")["customer_id"]
    found = set(walk.truth[ids])
    return [] if len(found) == 3 else [f"typical rows are of {', '.join(sorted(found))} only"]


def played(n_rows: int) -> list[Done]:
    """All steps, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        walk = Walk(Path(folder), customers(n_rows))
        walk.table.to_csv(walk.place / "customers.csv", index=False)
        walk.table.assign(since=pd.to_datetime(walk.table["since"])).to_parquet(
            walk.place / "customers.parquet"
        )
        few = walk.table.head(200)
        few.replace({"plan": {"trial": "gift"}}).to_csv(walk.place / "strange.csv", index=False)
        few.drop(columns="visits").to_csv(walk.place / "fewer.csv", index=False)
        for steps in STEPS:
            steps(walk)
        return walk.done


def page(few: list[Done], many: list[Done]) -> None:
    """Write what was typed and printed."""
    pairs = zip(few, many, strict=True)
    rows = [(f.title, f"{f.seconds:.1f}", f"{m.seconds:.1f}") for f, m in pairs]
    wrong = [f"{d.title}: {'; '.join(d.wrong)}" for d in (*few, *many) if d.wrong]
    said = f"{len(wrong)} steps went wrong." if wrong else "All steps went right."
    parts = [
        f"A new user in an empty folder, with a messy table of {ROWS:,} and of {MANY_ROWS:,} rows: "
        "ids, categories, dates, truth values, missing values, a constant column, three planted "
        "groups. Every step is checked: labels are joined by id, and the adjusted Rand index with "
        f"the groups is at least 0.9 wherever three clusters are asked for. {said} Seconds are "
        "those of whole commands, with the start of Python, on a machine that did other things.",
        *(f"- {line}" for line in wrong),
        table(("step", f"seconds, {ROWS:,} rows", f"{MANY_ROWS:,} rows"), rows),
        f"## What was typed and printed, with {ROWS:,} rows",
        *(_shown(step) for step in few),
    ]
    data = {str(n): [asdict(step) for step in done] for n, done in ((ROWS, few), (MANY_ROWS, many))}
    write("new-user", "A new user's table", "python pipelines/new_user.py --page", parts, data)


def _shown(step: Done) -> str:
    """A step with what it printed, both indented so that no fence can end them."""
    lines = step.printed.rstrip().splitlines()
    more = len(lines) - SHOWN_LINES
    lines = [*lines[:SHOWN_LINES], f"... {more} more lines"] if more > 0 else lines
    kind = "sh" if step.command.startswith("dmkc") else "python"
    code = f"```{kind}\n{step.command}\n```"
    printed = "\n".join(lines)
    text = f"\n\n```text\n{printed}\n```" if lines else ""
    return f"### {step.title[:1].upper()}{step.title[1:]}\n\n{code}{text}"


def steps_of(n_rows: str) -> list[dict[str, Any]]:
    """All steps with so many rows, as plain values."""
    return [asdict(step) for step in played(int(n_rows))]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--page", action="store_true", help="play both sizes and write the page")
    options = parser.parse_args(words)
    if options.page:
        kept, _ = one_by_one("new-user", [str(ROWS), str(MANY_ROWS)], steps_of)
        few, many = ([Done(**step) for step in kept[str(n)]] for n in (ROWS, MANY_ROWS))
        page(few, many)
        done = [*few, *many]
    else:
        done = played(options.rows)
    wrong = [step for step in done if step.wrong]
    for step in wrong:
        print(f"\n{step.title}: {'; '.join(step.wrong)}\n$ {step.command}\n{step.printed[-2000:]}")
    print(f"\n{len(done)} steps, {len(wrong)} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
