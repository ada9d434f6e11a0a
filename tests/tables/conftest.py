"""A table with a column of every kind."""

import numpy as np
import pandas as pd
import pytest


def mixed(n=80, seed=0):
    rng = np.random.default_rng(seed)
    side = np.arange(n) % 2
    frame = pd.DataFrame(
        {
            "customer_id": np.arange(n) + 1000,
            "email": [f"user{i}@example.org" for i in range(n)],
            "age": rng.normal(30 + 30 * side, 3).round(1),
            "visits": rng.integers(1, 9, n) + 20 * side,
            "member": rng.random(n) < 0.5,
            "country": rng.choice(["DE", "FR", "IT"], n),
            "size": pd.Categorical(rng.choice(["s", "m", "l"], n), ["s", "m", "l"]),
            "since": pd.Timestamp("2020-03-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "currency": "EUR",
            "empty": np.nan,
        }
    )
    return frame.assign(seen=frame["since"].dt.strftime("%Y-%m-%d"))


@pytest.fixture
def table():
    return mixed()


@pytest.fixture
def gaps():
    """The same with missing values in three rows of columns that are used."""
    frame = mixed()
    frame.loc[3, "age"] = np.nan
    frame.loc[[3, 7], "country"] = None
    frame.loc[11, "since"] = pd.NaT
    return frame
