"""Where scans run: in this process's threads, or on the workers of a Dask cluster.

Both engines do the same three things: `hold` maps blocks once and keeps the results where they
were made, `scan` runs one scan over blocks and returns the merged statistic, `collect` maps
blocks and brings the results here.  Neither knows what a scan computes.

BLAS has one thread inside tasks: workers times BLAS threads must never oversubscribe a machine.  It
also keeps bits: a BLAS sums in another order on another number of threads.
"""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import dask
import dask.base
import dask.threaded
import psutil
from dask.delayed import delayed
from threadpoolctl import LibController, ThreadpoolController

from dmkc.data import BlockRows, Lazy, passes
from dmkc.errors import UserError, UserTypeError
from dmkc.scan.base import Scan
from dmkc.scan.grid import Grid, Node, Piece, fold_pieces
from dmkc.scan.requests import SideBySide
from dmkc.typing import MaybeClient

Before = list[tuple[LibController, int]]
"""Libraries with the numbers of threads they had."""

_lock = threading.Lock()
_inside = 0
_before: Before = []
_libraries: tuple[list[LibController], list[LibController]] = ([], [])
_modules = 0
"""How many modules had been imported when libraries were last looked for."""
_here = threading.local()
Block = Any  # anything with .start and .stop: Read, Lazy, Held, or a cluster's Placed
Make = Callable[[Any], Any]
MAX_BLOCK_BYTES = 48 << 20
MIN_BLOCK_BYTES = 2 << 20
LARGE_BLOCK_BYTES = 384 << 20
"""Where blocks would be very many."""
counted: ContextVar[Callable[[Engine], Engine] | None] = ContextVar("dmkc_counted", default=None)
"""Set while a fit is metered: from an engine to one that counts its calls."""
recorder: ContextVar[Callable[[Engine, Any], Engine] | None] = ContextVar(
    "dmkc_recorder", default=None
)
"""Set inside `dmkc.checkpoint`: from an engine and the estimator it is for to one that records."""
shared: ContextVar[Engine | None] = ContextVar("dmkc_shared", default=None)
"""Set while several fits run together: the engine of the one that runs now."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run the body with BLAS and OpenMP limited to one thread.

    Some libraries count threads for each calling thread (OpenMP, MKL): every thread that comes in
    sets its own limit.  OpenBLAS counts for the whole process: the first thread in sets the limit
    and the last one out restores it, which need not be the same.
    """
    depth = getattr(_here, "depth", 0)
    if depth == 0:
        _here.before = _come_in()
    else:
        _limit_again()
    _here.depth = depth + 1
    try:
        yield
    finally:
        _here.depth = depth
        if depth == 0:
            _go_out(_here.before)


def _come_in() -> Before:
    """Limit this thread and, if it is the first one in, the process."""
    global _inside, _before, _libraries, _modules
    with _lock:
        if len(sys.modules) != _modules:  # an import may have brought a library of its own
            _libraries, _modules = _loaded(), len(sys.modules)
        shared, own = _libraries
        known = {library.filepath for library, _ in _before}
        _before += _limited([library for library in shared if library.filepath not in known])
        _inside += 1
    _limit_again()
    return _limited(own)


def _limit_again() -> None:
    """Somebody else may have raised a limit since it was set."""
    with _lock:
        _restore([(library, 1) for library in _libraries[0]])


def _go_out(own: Before) -> None:
    """Take back what `_come_in` did."""
    global _inside, _before
    _restore(own)
    with _lock:
        _inside -= 1
        if _inside == 0:
            _restore(_before)
            _before = []


def _loaded() -> tuple[list[LibController], list[LibController]]:
    """Libraries with one number of threads for the process, and with one for each thread.

    Numba loads the BLAS of its matrix products when it first makes one, inside a task; it has to be
    known before.
    """
    import scipy.linalg.cython_blas  # noqa: F401

    shared: list[LibController] = []
    own: list[LibController] = []
    for library in ThreadpoolController().lib_controllers:
        info: dict[str, Any] = library.info()
        whole = info["internal_api"] in ("openblas", "blis")
        (shared if whole and info["threading_layer"] != "openmp" else own).append(library)
    return shared, own


def _limited(libraries: list[LibController]) -> Before:
    before = [(library, int(library.get_num_threads() or 1)) for library in libraries]
    _restore([(library, 1) for library in libraries])
    return before


def _restore(before: Before) -> None:
    for library, number in before:
        # threadpoolctl lets only the thread that set an OpenBLAS limit change it
        free = getattr(library, "clear_controlling_thread", None)
        if free is not None:
            free(force=True)
        library.set_num_threads(number)
        if free is not None and number > 1:
            free(force=True)


@dataclass(frozen=True)
class Held:
    """A block whose value is in this process's memory."""

    value: Any
    start: int
    stop: int


class Asked(NamedTuple):
    """A scan that a fit waits for."""

    scan: Scan
    blocks: Sequence[Block]
    grid: Grid

    @property
    def over(self) -> tuple[int, Grid]:
        """The same for scans that can share a pass."""
        return id(self.blocks), self.grid


@dataclass(frozen=True)
class Each:
    """Several functions of the same rows."""

    funcs: tuple[Make, ...]

    def __call__(self, rows: Any) -> tuple[Any, ...]:
        return tuple(func(rows) for func in self.funcs)


def load(block: Block) -> Any:
    """The rows of a block that can be had without a scheduler."""
    return block.value if isinstance(block, Held) else block.load()


def run_block(scan: Scan, value: Any, start: int, grid: Grid) -> Piece:
    """One task's work: the tree node of one block."""
    with one_blas_thread():
        node = scan.block(value, start, grid.leaf_rows)
    return grid.level, start // grid.block_rows, node


def only_node(pieces: Sequence[Piece], grid: Grid, scan: Scan) -> Node:
    """The statistic of all rows from what the tasks returned."""
    done = fold_pieces(pieces, grid.n_leaves, scan.merge)
    if len(done) != 1:
        raise RuntimeError(f"The scan {scan.name!r} came back with {len(done)} parts, not one.")
    return done[0][2]


def block_bytes_for(memory_per_thread: float, most: int = MAX_BLOCK_BYTES) -> int:
    """Tens of MB, less where a worker has little memory."""
    return int(min(most, max(memory_per_thread / 8, MIN_BLOCK_BYTES)))


class Engine(ABC):
    """Runs scans over blocks of rows."""

    threads: int
    """Tasks that can run at once."""
    memory: int
    """Bytes that held blocks may take in all."""
    block_bytes: int
    """Bytes of columns that one task should work on."""
    description: str
    """Where scans run, in words."""
    here: bool = False
    """Whether scans run in this process, which then reads its own disk."""

    def local(self) -> Engine:
        """An engine for a part of the rows that is in this process's memory."""
        return ThreadEngine()

    def require(self, modules: set[str]) -> None:
        """Refuse to begin where scans could not import these modules."""
        return

    def resident(self) -> list[int]:
        """Bytes that every process that scans has in memory now."""
        return [resident_bytes()]

    def bring(self, blocks: Sequence[Block]) -> list[Block]:
        """Rows in this process's memory, put where scans can use them again and again."""
        return list(blocks)

    def grid(self, n_rows: int, width: int, leaf_rows: int | None = None) -> Grid:
        """Blocks for rows of so many columns."""
        most = block_bytes_for(self.memory / self.threads, LARGE_BLOCK_BYTES)
        return Grid.plan(n_rows, width, self.block_bytes, self.threads, leaf_rows, most)

    def remember(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` finds; a run that is taken up again finds it written down."""
        return make()

    def once(self, what: Hashable, make: Callable[[], list[Block]]) -> list[Block]:
        """Blocks that are made once for all fits that run together."""
        return make()

    def first_equal(self, value: Any) -> Any:
        """The value, or the one equal to it that a fit running together with this one has made."""
        return value

    @abstractmethod
    def hold(self, make: Make, blocks: Sequence[Block], name: str) -> list[Block]:
        """Blocks with the values `make(rows)`, kept in memory where they were made."""

    def hold_each(
        self, makes: Sequence[Make], blocks: Sequence[Block], name: str
    ) -> list[list[Block]]:
        """The same for several functions, of one pass over the blocks where that can be had."""
        return [self.hold(make, blocks, name) for make in makes]

    @abstractmethod
    def scan(self, scan: Scan, blocks: Sequence[Block], grid: Grid) -> Node:
        """The statistic of all blocks."""

    def scan_together(self, asked: Sequence[Asked]) -> list[Node]:
        """The statistics of several scans; those of the same blocks are one pass."""
        found: dict[int, Node] = {}
        for over in dict.fromkeys(one.over for one in asked):
            here = {k: one for k, one in enumerate(asked) if one.over == over}
            first = next(iter(here.values()))
            scans = list({id(one.scan): one.scan for one in here.values()}.values())
            if len(scans) == 1:
                nodes = [self.scan(scans[0], first.blocks, first.grid)]
            else:
                nodes = self.scan(SideBySide(tuple(scans)), first.blocks, first.grid)
            by_scan = dict(zip(map(id, scans), nodes, strict=True))
            for k, one in here.items():  # each has the statistic for itself, to do with as it likes
                node = by_scan[id(one.scan)]
                found[k] = node if len(here) == len(scans) else deepcopy(node)
        return [found[k] for k in range(len(asked))]

    @abstractmethod
    def collect(self, func: Make, blocks: Sequence[Block], name: str) -> list[Any]:
        """The values `func(rows)` of all blocks, in this process."""


class ThreadEngine(Engine):
    """Scans in this process with Dask's threaded (or synchronous) scheduler; no cluster."""

    here = True

    def __init__(self) -> None:
        told = "distributed" in sys.modules or dask.config.get("scheduler", None)
        get = dask.base.get_scheduler() if told else None  # which would import distributed
        if get is None or hasattr(getattr(get, "__self__", None), "scheduler_info"):
            get = dask.threaded.get  # a connected client is the other engine's business
        if "multiprocessing" in getattr(get, "__module__", ""):
            raise UserError(
                "Dask's multiprocessing scheduler would copy all rows on every scan; "
                "use a LocalCluster, or leave the scheduler unset for threads."
            )
        self._get = get
        synchronous = get is dask.get
        workers = 1 if synchronous else (dask.config.get("num_workers", None) or _cpus())
        self.threads = int(workers)
        self.memory = int(0.5 * psutil.virtual_memory().available)
        self.block_bytes = block_bytes_for(self.memory / self.threads)
        self.description = f"this process, {self.threads} thread(s)"

    def hold(self, make: Make, blocks: Sequence[Block], name: str) -> list[Block]:
        values = self.collect(make, blocks, name)
        return [Held(v, b.start, b.stop) for v, b in zip(values, blocks, strict=True)]

    def hold_each(
        self, makes: Sequence[Make], blocks: Sequence[Block], name: str
    ) -> list[list[Block]]:
        values = zip(*self.collect(Each(tuple(makes)), blocks, name), strict=True)
        return [
            [Held(v, b.start, b.stop) for v, b in zip(made, blocks, strict=True)] for made in values
        ]

    def scan(self, scan: Scan, blocks: Sequence[Block], grid: Grid) -> Node:
        pieces = self._map(_scan_value, blocks, scan.name, scan, grid)
        return only_node(pieces, grid, scan)

    def collect(self, func: Make, blocks: Sequence[Block], name: str) -> list[Any]:
        return self._map(_make_value, blocks, name, func)

    def _map(self, func: Callable, blocks: Sequence[Block], name: str, *args: Any) -> list[Any]:
        if any(isinstance(b, Lazy) for b in blocks):
            tasks = [
                delayed(func, pure=False)(
                    b.delayed if isinstance(b, Lazy) else load(b), b.start, *args
                )
                for b in blocks
            ]
            with passes.counted():
                return list(dask.compute(*tasks, scheduler=self._get, num_workers=self.threads))
        keys = [(name, b.start) for b in blocks]
        # a bare call hides its arguments from Dask, which would look for tasks among them
        graph = {
            key: (partial(_on_block, func, block, args),)
            for key, block in zip(keys, blocks, strict=True)
        }
        with passes.counted():
            return list(self._get(graph, keys, num_workers=self.threads))


def _on_block(func: Callable, block: Block, args: tuple) -> Any:
    return func(load(block), block.start, *args)


def _make_value(rows: BlockRows, start: int, make: Make) -> Any:
    with one_blas_thread():
        return make(rows)


def _scan_value(rows: BlockRows, start: int, scan: Scan, grid: Grid) -> Piece:
    return run_block(scan, rows, start, grid)


def resident_bytes() -> int:
    """Bytes that this process has in memory."""
    return int(psutil.Process().memory_info().rss)


def _cpus() -> int:
    """Processors this process may use, which a batch queue sets below the machine's number."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def open_engine(client: MaybeClient = None, owner: Any = None) -> Engine:
    """The engine for `client`, for the current Dask client, or for threads when there is none.

    With the estimator that it is for as `owner`, its scans are recorded inside `dmkc.checkpoint`.
    A fit that runs together with others has their common engine.
    """
    together = shared.get()
    if together is not None:
        return together
    engine, record = _engine(client), recorder.get()
    if owner is not None and not engine.here:  # here its code is imported already
        engine.require(owner.modules_of_others())
    return metered(engine if owner is None or record is None else record(engine, owner))


def metered(engine: Engine) -> Engine:
    """The engine itself, or one that counts where a meter is active."""
    count = counted.get()
    return engine if count is None else count(engine)


def _engine(client: MaybeClient) -> Engine:
    if client is None and "distributed" not in sys.modules:
        return ThreadEngine()  # nobody can have connected a client
    from distributed import Client

    from dmkc.scan.cluster import ClusterEngine

    if client is None:
        try:
            client = Client.current()
        except ValueError:
            return ThreadEngine()
    if not isinstance(client, Client):
        raise UserTypeError(f"`client` must be a distributed.Client, not {type(client).__name__}.")
    if client.status != "running":
        raise UserError(f"The Dask client is {client.status}; connect a new one.")
    return ClusterEngine(client)
