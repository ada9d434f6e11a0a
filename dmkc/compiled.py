"""How the compiled loops are built: released GIL, fast float arithmetic, kept on disk.

A loop is compiled when it is first called, so that importing its module does not import Numba.
Compilation happens once per machine and kind of arguments: `dmkc/loopcache.py` keeps what came out,
and compiles again what has changed since.

A loop either adds up or stores, never both: where a loop stores, the compiler makes a second form
of it for arrays that may overlap, and at each run takes one of them by where the arrays happen to
lie in memory.  Both forms store the same values, but they add up in different orders.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, update_wrapper
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

import numpy as np

REORDER = ("arcp", "contract", "nsz", "reassoc")
"""Sums may be reordered and fused, so that loops vectorise; NaN and infinity stay themselves."""
CONSTANTS = (bool, int, float, complex, str, bytes, tuple, np.generic, np.dtype, type, type(None))
"""What a loop may take from its module beside other functions."""

Function = TypeVar("Function", bound=Callable[..., Any])
_lock = threading.RLock()


class Loop:
    """A function that Numba compiles when it is first called."""

    __name__: str

    def __init__(self, func: FunctionType, **options: Any) -> None:
        update_wrapper(self, func)
        self.func, self._options = func, options
        self._ready: Any = None

    def __call__(self, *args: Any) -> Any:
        return (self._ready or self.ready())(*args)

    def __reduce__(self) -> str:
        return self.__name__

    def ready(self) -> Any:
        """What Numba makes of the function, with what it makes of the loops that it calls."""
        with _lock:
            if self._ready is None:
                import numba

                from dmkc.loopcache import LoopCache

                func, scope = self.func, dict(self.func.__globals__)
                for name in func.__code__.co_names:
                    if isinstance(scope.get(name), Loop):
                        scope[name] = scope[name].ready()
                twin = update_wrapper(
                    FunctionType(func.__code__, scope, None, func.__defaults__), func
                )
                fast = self._options["fastmath"]
                made = numba.njit(**{**self._options, "fastmath": set(fast)})(twin)
                if "inline" not in self._options:
                    made._cache = LoopCache(
                        func, repr((self._parts(), sorted(self._options.items())))
                    )
                self._ready = made
            return self._ready

    def _parts(self) -> list[Any]:
        """All that a function does: its code, the loops that it calls and the constants it uses."""
        code, scope = self.func.__code__, self.func.__globals__
        used = [scope[name] for name in code.co_names if name in scope]
        return [
            *_code_parts(code),
            *(value._parts() for value in used if isinstance(value, Loop)),
            *(repr(value) for value in used if isinstance(value, CONSTANTS)),
        ]


def compiled(func: Function) -> Function:
    """Compile for speed; sums may be reordered within a leaf, the same way every time."""
    return _loop(func, nogil=True, fastmath=REORDER)


def compiled_exact(func: Function) -> Function:
    """Compile keeping IEEE rules, for code that looks for NaN and infinity."""
    return _loop(func, nogil=True, fastmath=())


def inlined(func: Function) -> Function:
    """A small function pasted into the compiled loops that call it."""
    return _loop(func, inline="always", fastmath=REORDER)


@cache
def ready_to_load() -> None:
    """Do once in a process what the first compiled loop needs: most of a second."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    import dmkc.loopcache  # noqa: F401

    with global_compiler_lock:
        cpu_target.target_context.refresh()


def _loop(func: Function, **options: Any) -> Function:
    return cast(Function, Loop(cast(FunctionType, func), **options))


def _code_parts(code: CodeType) -> list[Any]:
    inner = [
        _code_parts(value) if isinstance(value, CodeType) else repr(value)
        for value in code.co_consts
    ]
    return [code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, inner]
