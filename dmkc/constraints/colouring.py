"""A first labeling that keeps every cannot-link, for several clusters: graph colouring.

A group with fewer rivals than there are clusters can always be labelled last, so such groups are
set aside until only a core is left, which for random pairs is nearly always empty.  The core is
searched by the most constrained group first, with steps back; giving up is said, never hidden.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from dmkc.errors import UserError

MAX_STEPS = 200_000
"""Steps after which the search of a core is given up."""


def colouring(n: int, edges: np.ndarray, n_clusters: int) -> np.ndarray:
    """A cluster for every group such that the ends of every edge differ, or a ValueError."""
    rivals: list[list[int]] = [[] for _ in range(n)]
    for a, b in edges.tolist():
        rivals[a].append(b)
        rivals[b].append(a)
    last, core = _peeled(rivals, n_clusters)
    found = np.full(n, -1, np.int64)
    if core:
        _search(rivals, core, n_clusters, found)
    for node in reversed(last):
        taken = {int(found[r]) for r in rivals[node]}
        found[node] = next(c for c in range(n_clusters) if c not in taken)
    return found


def _peeled(rivals: list[list[int]], m: int) -> tuple[list[int], list[int]]:
    """Groups in the order in which they are set aside, and the core that is left."""
    degree = [len(r) for r in rivals]
    waiting = deque(k for k, d in enumerate(degree) if d < m)
    gone = [d < m for d in degree]
    last = []
    while waiting:
        node = waiting.popleft()
        last.append(node)
        for r in rivals[node]:
            degree[r] -= 1
            if degree[r] < m and not gone[r]:
                gone[r] = True
                waiting.append(r)
    return last, [k for k, out in enumerate(gone) if not out]


def _search(rivals: list[list[int]], core: list[int], m: int, found: np.ndarray) -> None:
    """Label the core, most constrained group first, stepping back from dead ends."""
    inside = set(core)
    near = {k: [r for r in rivals[k] if r in inside] for k in core}
    taken = {k: [0] * m for k in core}
    trail: list[tuple[int, int]] = []
    """Labelled groups with the number of labels in use when each was labelled."""
    used, steps, after = 0, 0, -1
    node = max(core, key=lambda k: len(near[k]))
    while True:
        steps += 1
        if steps > MAX_STEPS:
            raise UserError(
                f"No labeling with {m} clusters that keeps all cannot-links was found in "
                f"{MAX_STEPS} steps, and it is not known whether there is one: pass hard=False, "
                "use more clusters, or drop cannot-links."
            )
        # A label that no group has yet is as good as any other such label.
        choice = next((c for c in range(after + 1, min(used + 1, m)) if not taken[node][c]), None)
        if choice is None:
            if not trail:
                raise UserError(
                    f"The cannot-links cannot all be kept with {m} clusters (they ask for more, "
                    f"among {len(core)} groups of rows): pass hard=False, use more clusters, or "
                    "drop cannot-links."
                )
            node, used = trail.pop()
            after = int(found[node])
            found[node] = -1
            for r in near[node]:
                taken[r][after] -= 1
            continue
        trail.append((node, used))
        found[node] = choice
        used = max(used, choice + 1)
        for r in near[node]:
            taken[r][choice] += 1
        if len(trail) == len(core):
            return
        node = max(
            (k for k in core if found[k] < 0),
            key=lambda k: (sum(t > 0 for t in taken[k]), len(near[k])),
        )
        after = -1
