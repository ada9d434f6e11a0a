"""What compiled loops must not do, so that their bits do not depend on where arrays lie."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import dmkc


def innermost_loops(tree: ast.AST) -> Iterator[ast.For]:
    """Loops without loops inside, of functions that are compiled."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        if not any("compiled" in ast.unparse(name) for name in function.decorator_list):
            continue
        for loop in ast.walk(function):
            if isinstance(loop, ast.For) and not any(
                isinstance(part, ast.For | ast.While) for part in ast.walk(loop) if part is not loop
            ):
                yield loop


def stores_and_sums(loop: ast.For) -> bool:
    """Whether a loop without branches writes to arrays and adds up numbers as well."""
    parts = list(ast.walk(loop))
    sums = any(isinstance(p, ast.AugAssign) and isinstance(p.target, ast.Name) for p in parts)
    targets = [
        target
        for p in parts
        if isinstance(p, ast.Assign | ast.AugAssign)
        for target in (p.targets if isinstance(p, ast.Assign) else [p.target])
    ]
    stores = any(isinstance(inner, ast.Subscript) for t in targets for inner in ast.walk(t))
    return sums and stores and not any(isinstance(p, ast.If) for p in parts)


def test_a_loop_adds_up_or_stores():
    """A loop that does both adds up in another order where arrays may overlap."""
    sources = list(Path(dmkc.__file__).parent.rglob("*.py"))
    found = [
        f"{path.name}:{loop.lineno}"
        for path in sources
        for loop in innermost_loops(ast.parse(path.read_text()))
        if stores_and_sums(loop)
    ]
    assert found == []


def test_the_rule_sees_what_it_forbids():
    code = "@compiled\ndef f(a, out, t):\n    for i in range(3):\n        {}\n        t += 1"
    (harmful,) = innermost_loops(ast.parse(code.format("out[i] = t")))
    assert stores_and_sums(harmful)
    (harmless,) = innermost_loops(ast.parse(code.format("s = a[i]")))
    assert not stores_and_sums(harmless)
