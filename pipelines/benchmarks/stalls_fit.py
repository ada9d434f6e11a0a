"""Fits that may stall, one for every line of JSON that is read; what each took is a line of JSON.

stalls.py runs it as a process of one version of the library, which is found by PYTHONPATH.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

ROWS = 2000
GENERATED = ("normal", "cauchy", "lognormal", "student", "ringnorm")
MASTERS = (
    "dmkc.clusterers.margin.bundle:Bundle.solve",
    "dmkc.clusterers.margin.newton:NewtonPath.steps",
    "dmkc.clusterers.margin.cccp:_Bundle.solve",
)
"""What solves the small problems of the coordinator, in one version or another."""


def rows_of(name: str) -> tuple[np.ndarray, int]:
    """Rows and the number of their clusters."""
    if name.split()[0] in GENERATED and " " in name:
        from dmkc.datasets import make_ringnorm

        kind, n, d, k = name.split()
        rng, shape = np.random.default_rng(0), (int(n), int(d))
        draws = {
            "normal": lambda: rng.normal(size=shape),
            "cauchy": lambda: rng.standard_cauchy(shape),
            "lognormal": lambda: rng.lognormal(size=shape),
            "student": lambda: rng.standard_t(2, shape) * np.exp(rng.normal(size=shape[1]) * 3),
            "ringnorm": lambda: make_ringnorm(shape[0], seed=0, chunks=None)[0],
        }
        return draws[kind](), int(k)
    import all_methods_sets

    X, y = all_methods_sets.rows_of(name, ROWS)
    return X, int(y.max()) + 1


class Fits:
    """Makes fits, and meters the masters among them."""

    def __init__(self) -> None:
        from dmkc.clusterers.registry import ESTIMATORS

        self.known: Any = ESTIMATORS
        self.master, self.calls = 0.0, 0
        for place in MASTERS:
            module, _, name = place.partition(":")
            owner, name = name.split(".")
            there = importlib.util.find_spec(module) and importlib.import_module(module)
            if hasattr(there, owner):
                kind: Any = getattr(there, owner)
                setattr(kind, name, self.metered(getattr(kind, name)))

    def metered(self, solve: Any) -> Any:
        def timed(*given: Any) -> Any:
            began = time.perf_counter()
            try:
                return solve(*given)
            finally:
                self.master += time.perf_counter() - began
                self.calls += 1

        return timed

    def fit(
        self, name: str, method: str, scale: str, price: str, usual: float | None
    ) -> dict[str, Any]:
        """`usual` is the C of the fit by default."""
        X, k = rows_of(name)
        given: dict[str, Any] = {} if scale == "default" else {"scale": None}
        model = self.known[method](k, random_state=0, **given)
        if price != "default":
            if usual is None:
                return {"failed": "the fit by default did not end"}
            times = {"tenth": usual / 10, "ten times": 10 * usual}
            C = times.get(price) or float(price)
            model.set_params(C=max(C, 1.05) if method == "skmmc" else C)
        self.master, self.calls = 0.0, 0
        began = time.perf_counter(), time.process_time()
        model.fit(X)
        seconds, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
        last = model.history_[-1] if model.history_ else {}
        return {
            "seconds": seconds,
            "cpu": cpu,
            "master": self.master,
            "masters": self.calls,
            "scans": int(model.n_scans_),
            "gap": last.get("gap"),
            "converged": bool(model.converged_),
            "price": float(getattr(model, "C_", None) or getattr(model, "C", None) or 0.0),
            "objective": float(model.objective_) if hasattr(model, "objective_") else None,
        }


def main() -> None:
    warnings.simplefilter("ignore")
    import dmkc

    fits = Fits()
    for method in ("mkc", "skmmc", "odm", "planes", "hmkkm"):  # compiled, and imported
        fits.known[method](2, random_state=0).fit(rows_of("normal 200 3 2")[0])
        fits.known[method](3, random_state=0).fit(rows_of("normal 200 3 2")[0])
    print(json.dumps({"place": str(Path(dmkc.__file__).parents[1])}), flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        try:
            found = fits.fit(*case)
        except Exception as problem:
            found = {"failed": f"{type(problem).__name__}: {problem}"[:300]}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
