"""How the compiled loops are built: released GIL, fast float arithmetic, cached on disk.

Compilation happens once per environment.  Numba keeps its cache beside the source; where that
folder cannot be written (a system-wide installation) it falls back to the user's cache folder by
itself, and `NUMBA_CACHE_DIR` overrides both.  A cached function is renewed only when its own file
changes, so compiled functions never call compiled functions of another file.

A loop either adds up or stores, never both: where a loop stores, the compiler makes a second form
of it for arrays that may overlap, and at each run takes one of them by where the arrays happen to
lie in memory.  Both forms store the same values, but they add up in different orders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

REORDER = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be reordered and fused, so that loops vectorise; NaN and infinity stay themselves."""

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(func: Function) -> Function:
    """Compile for speed; sums may be reordered within a leaf, the same way every time."""
    return cast(Function, numba.njit(nogil=True, fastmath=REORDER, cache=True)(func))


def compiled_exact(func: Function) -> Function:
    """Compile keeping IEEE rules, for code that looks for NaN and infinity."""
    return cast(Function, numba.njit(nogil=True, fastmath=False, cache=True)(func))


def inlined(func: Function) -> Function:
    """A small function pasted into the compiled loops that call it."""
    return cast(Function, numba.njit(inline="always", fastmath=REORDER)(func))
