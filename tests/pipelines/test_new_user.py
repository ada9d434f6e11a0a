"""The new user's steps: what is checked is seen, and all of them go right."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

PIPELINES = Path(__file__).parents[2] / "pipelines"


@pytest.fixture
def walk(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(PIPELINES))
    from new_user_walk import Walk, customers

    return Walk(tmp_path, customers(300))


def test_the_table_is_messy_and_has_three_groups(walk):
    table = walk.table
    assert table["customer_id"].is_unique and table["currency"].nunique() == 1
    assert 0 < len(walk.holed) < 30 and table["segment"].nunique() == 3
    assert table["newsletter"].dtype == bool and table["since"].dropna().str.len().eq(10).all()


def test_wrong_labels_are_seen(walk):
    truth = walk.truth
    right = pd.DataFrame({"customer_id": truth.index, "cluster": pd.factorize(truth)[0]})
    right.sample(frac=1, random_state=0).to_csv(walk.place / "right.csv", index=False)
    assert walk.labels("right.csv", dropped=False) == []
    assert "no label" in walk.labels("right.csv", dropped=True)[0]
    mixed = right.assign(cluster=np.arange(300) % 3)
    mixed.to_parquet(walk.place / "mixed.parquet")
    assert "Rand index" in walk.labels("mixed.parquet", dropped=False)[0]
    right.iloc[5:].to_csv(walk.place / "short.csv", index=False)
    assert "5 ids have no label" in walk.labels("short.csv", dropped=False)[0]


def test_a_step_that_goes_wrong_is_named(walk, capsys):
    walk.python("fail", "raise SystemExit(3)", lambda said: [])
    walk.python("say", "print('done')", lambda said: [] if "done" in said else ["silent"])
    walk.python("lie", "print('done')", lambda said: ["wrong"])
    assert [step.wrong for step in walk.done] == [["it ended with 3, not 0"], [], ["wrong"]]
    assert "fail: it ended with 3" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_steps_go_right(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(PIPELINES))
    monkeypatch.syspath_prepend(str(PIPELINES / "benchmarks"))
    import new_user

    assert new_user.main([]) == 0, capsys.readouterr().out
    assert "steps, 0 of them wrong" in capsys.readouterr().out
