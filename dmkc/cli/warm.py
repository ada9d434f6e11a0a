"""`dmkc warm`: compile the inner loops now, so that the first fit need not."""

from __future__ import annotations

import argparse
import itertools
import time
import warnings

from dmkc.cli.common import define

ROWS, COLUMNS = 120, 4
SETTINGS = {"sample_rows": ROWS // 2, "dtype": "float32"}
"""Besides the defaults: arrays of features are of the other precision where rows are many."""


def add(parser: argparse.ArgumentParser) -> None:
    define(parser, "dmkc warm", run)
    parser.description = (
        "Fits every method to a few rows, which compiles the inner loops for both precisions and "
        "keeps them beside the code, or in the user's cache folder where that cannot be written. "
        "To be run once after an installation, such as in the recipe of a container."
    )


def run(args: argparse.Namespace) -> None:
    import numpy as np

    from dmkc.clusterers.registry import ESTIMATORS

    began = time.perf_counter()
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(ROWS, COLUMNS)) + 4.0 * rng.integers(0, 3, size=(ROWS, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in set(ESTIMATORS) - {"auto"}:  # which fits the others
            cls = ESTIMATORS[name]
            others = {key: value for key, value in SETTINGS.items() if key in cls.parameters()}
            kinds = itertools.product((2, 3), ({}, others), (np.float64, np.float32))
            for clusters, settings, precision in kinds:
                X = rows.astype(precision)
                X.flags.writeable = clusters == 2  # rows of files and messages cannot be written
                cls(clusters, random_state=0, **settings).fit(X).predict(X)
    print(f"The loops are compiled ({time.perf_counter() - began:.0f} s).")
