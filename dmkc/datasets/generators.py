"""Generated data sets of any number of rows, the same whatever the chunks.

Rows are made in fixed segments, each from its own random stream, so that any worker can make any
rows, and a larger set begins with the rows of a smaller one.
"""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import DTypeLike

from dmkc.errors import UserError

from .recipes import Array, Blobs, Moons, Recipe, Ringnorm, Rings, Waveform, stream
from .shapes import CirclesAndGaussians, ConcentricCircles, Flower, SmilingFace, TwoBananas

SEGMENT = 4096
LAZY_ABOVE = 1_000_000
DEFAULT_CHUNK = 16 * SEGMENT

RECIPES: dict[str, type[Any]] = {
    "ringnorm": Ringnorm,
    "waveform": Waveform,
    "blobs": Blobs,
    "rings": Rings,
    "moons": Moons,
    "two_bananas": TwoBananas,
    "smiling_face": SmilingFace,
    "concentric_circles": ConcentricCircles,
    "circles_and_gaussians": CirclesAndGaussians,
    "flower": Flower,
}


def rows(
    name: str,
    start: int,
    stop: int,
    *,
    seed: int = 0,
    dtype: DTypeLike = np.float32,
    **parameters: Any,
) -> tuple[Array, Array]:
    """Features and classes of the rows [start, stop) of a generated data set.

    Examples
    --------
    >>> from dmkc.datasets import make_moons, rows
    >>> X, y = make_moons(100, seed=0)
    >>> part, classes = rows("moons", 10, 20, seed=0)
    >>> bool((part == X[10:20]).all())
    True
    """
    if not 0 <= start <= stop:
        raise UserError(f"The rows [{start}, {stop}) do not exist; use 0 <= start <= stop.")
    recipe = _recipe(name, parameters)
    return _features(recipe, seed, start, stop, dtype), _labels(recipe, seed, start, stop)


def make_ringnorm(
    n: int, d: int = 20, *, seed: int = 0, chunks: Any = None, dtype: DTypeLike = np.float32
) -> tuple[Any, Any]:
    """Breiman's ringnorm: class 0 is N(0, 4 I), class 1 is N(a 1, I) with a = 2 / sqrt(d).

    Examples
    --------
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(1000, seed=0)
    >>> X.shape, y.shape
    ((1000, 20), (1000,))
    >>> X, y = make_ringnorm(10_000_000, seed=0)  # too many to make now: a lazy Dask array
    >>> type(X).__module__, X.shape
    ('dask.array.core', (10000000, 20))
    """
    return _make(n, Ringnorm(d), seed, chunks, dtype)


def make_waveform(
    n: int,
    *,
    noise: int = 0,
    classes: tuple[int, ...] = (0, 1, 2),
    seed: int = 0,
    chunks: Any = None,
    dtype: DTypeLike = np.float32,
) -> tuple[Any, Any]:
    """Breiman's waveforms in 21 columns, and `noise` more of pure noise (19 in the classic set).

    `classes` chooses the classes, for example (1, 2) for a problem of two.

    Examples
    --------
    >>> from dmkc.datasets import make_waveform
    >>> X, y = make_waveform(1000, noise=19, classes=(1, 2), seed=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 40), [1, 2])
    """
    return _make(n, Waveform(noise, classes), seed, chunks, dtype)


def make_blobs(
    n: int,
    d: int = 2,
    centers: Any = 3,
    *,
    spread: float = 1.0,
    box: float = 10.0,
    layout: int = 0,
    seed: int = 0,
    chunks: Any = None,
    dtype: DTypeLike = np.float32,
) -> tuple[Any, Any]:
    """Spherical normal clusters; `layout` fixes the centres, so other seeds give more rows.

    Examples
    --------
    >>> from dmkc.datasets import make_blobs
    >>> X, y = make_blobs(1000, d=5, centers=4, seed=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 5), [0, 1, 2, 3])
    """
    return _make(n, Blobs(d, centers, spread, box, layout), seed, chunks, dtype)


def make_rings(
    n: int,
    d: int = 2,
    *,
    noise: float = 0.1,
    factor: float = 0.5,
    layout: int = 0,
    seed: int = 0,
    chunks: Any = None,
    dtype: DTypeLike = np.float32,
) -> tuple[Any, Any]:
    """Two concentric rings in a random plane of d dimensions (fixed by `layout`), plus noise.

    Examples
    --------
    >>> from dmkc.datasets import make_rings
    >>> X, y = make_rings(1000, noise=0.07, factor=0.3, seed=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 2), [0, 1])
    """
    return _make(n, Rings(d, noise, layout, factor), seed, chunks, dtype)


def make_moons(
    n: int,
    d: int = 2,
    *,
    noise: float = 0.1,
    layout: int = 0,
    seed: int = 0,
    chunks: Any = None,
    dtype: DTypeLike = np.float32,
) -> tuple[Any, Any]:
    """Two half moons in a random plane of d dimensions (fixed by `layout`), plus noise.

    Examples
    --------
    >>> from dmkc.datasets import make_moons
    >>> X, y = make_moons(1000, noise=0.1, seed=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 2), [0, 1])
    """
    return _make(n, Moons(d, noise, layout), seed, chunks, dtype)


def make_two_bananas(
    n: int, *, noise: float = 1.0, seed: int = 0, chunks: Any = None, dtype: DTypeLike = np.float32
) -> tuple[Any, Any]:
    """Two crescents that reach into each other, an imitation of TB-1M.

    It is one of five shapes that imitate those of Huang et al., "Ultra-Scalable Spectral Clustering
    and Ensemble Clustering" (2020), from descriptions; `noise` multiplies the blur of all clusters.

    Examples
    --------
    >>> from dmkc.datasets import make_two_bananas
    >>> X, y = make_two_bananas(1000, seed=0)
    >>> X.shape, len(set(y.tolist()))
    ((1000, 2), 2)
    """
    return _make(n, TwoBananas(noise), seed, chunks, dtype)


def make_smiling_face(
    n: int, *, noise: float = 1.0, seed: int = 0, chunks: Any = None, dtype: DTypeLike = np.float32
) -> tuple[Any, Any]:
    """The outline of a face, two eyes and a mouth, an imitation of SF-2M.

    See `make_two_bananas` for `noise` and for what is imitated.

    Examples
    --------
    >>> from dmkc.datasets import make_smiling_face
    >>> X, y = make_smiling_face(1000, seed=0)
    >>> X.shape, len(set(y.tolist()))
    ((1000, 2), 4)
    """
    return _make(n, SmilingFace(noise), seed, chunks, dtype)


def make_concentric_circles(
    n: int, *, noise: float = 1.0, seed: int = 0, chunks: Any = None, dtype: DTypeLike = np.float32
) -> tuple[Any, Any]:
    """Three rings around one point, an imitation of CC-5M.

    See `make_two_bananas` for `noise` and for what is imitated.

    Examples
    --------
    >>> from dmkc.datasets import make_concentric_circles
    >>> X, y = make_concentric_circles(1000, seed=0)
    >>> X.shape, len(set(y.tolist()))
    ((1000, 2), 3)
    """
    return _make(n, ConcentricCircles(noise), seed, chunks, dtype)


def make_circles_and_gaussians(
    n: int, *, noise: float = 1.0, seed: int = 0, chunks: Any = None, dtype: DTypeLike = np.float32
) -> tuple[Any, Any]:
    """Three spots in two rings each and two more spots, an imitation of CG-10M.

    See `make_two_bananas` for `noise` and for what is imitated.

    Examples
    --------
    >>> from dmkc.datasets import make_circles_and_gaussians
    >>> X, y = make_circles_and_gaussians(1000, seed=0)
    >>> X.shape, len(set(y.tolist()))
    ((1000, 2), 11)
    """
    return _make(n, CirclesAndGaussians(noise), seed, chunks, dtype)


def make_flower(
    n: int, *, noise: float = 1.0, seed: int = 0, chunks: Any = None, dtype: DTypeLike = np.float32
) -> tuple[Any, Any]:
    """Six filled petals and a middle, an imitation of Flower-20M.

    See `make_two_bananas` for `noise` and for what is imitated.

    Examples
    --------
    >>> from dmkc.datasets import make_flower
    >>> X, y = make_flower(1000, seed=0)
    >>> X.shape, len(set(y.tolist()))
    ((1000, 2), 13)
    """
    return _make(n, Flower(noise), seed, chunks, dtype)


def _recipe(name: str, parameters: dict[str, Any]) -> Recipe:
    if name not in RECIPES:
        raise UserError(f"There is no generator {name!r}; choose one of {', '.join(RECIPES)}.")
    recipe = RECIPES[name]
    unknown = sorted(set(parameters) - set(recipe.__dataclass_fields__))
    if unknown:
        known = ", ".join(recipe.__dataclass_fields__)
        raise UserError(f"{name} has no parameter {', '.join(unknown)}; it takes {known}.")
    return recipe(**parameters)


def _segments(start: int, stop: int) -> list[tuple[int, slice]]:
    """The segments that the rows [start, stop) overlap, and the part of each."""
    return [
        (segment, slice(max(start - segment * SEGMENT, 0), min(stop - segment * SEGMENT, SEGMENT)))
        for segment in range(start // SEGMENT, -(-stop // SEGMENT))
    ]


def _labels(recipe: Recipe, seed: int, start: int, stop: int) -> Array:
    out, place = np.empty(stop - start, dtype=np.int64), 0
    for segment, part in _segments(start, stop):
        size = part.stop - part.start
        y = recipe.labels(stream(seed, recipe.number, segment), SEGMENT)
        out[place : place + size] = y[part]
        place += size
    return out


def _features(recipe: Recipe, seed: int, start: int, stop: int, dtype: DTypeLike) -> Array:
    out, place = np.empty((stop - start, recipe.columns), dtype=dtype), 0
    for segment, part in _segments(start, stop):
        size = part.stop - part.start
        rng = stream(seed, recipe.number, segment)
        # Whole segments, whatever part is wanted: the rows must not depend on the chunks.
        out[place : place + size] = recipe.features(rng, recipe.labels(rng, SEGMENT))[part]
        place += size
    return out


def _make(n: int, recipe: Recipe, seed: int, chunks: Any, dtype: DTypeLike) -> tuple[Any, Any]:
    if not isinstance(n, int | np.integer) or n < 1:
        raise UserError(f"n is {n!r}; ask for a whole number of rows of at least one.")
    stream(seed, recipe.number, 0)  # An impossible seed fails here and not on a worker.
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        raise UserError(f"dtype is {dtype}; use a floating-point type such as float32.")
    if chunks is None:
        if n <= LAZY_ABOVE:
            return _features(recipe, seed, 0, n, dtype), _labels(recipe, seed, 0, n)
        chunks = DEFAULT_CHUNK
    sizes = da.core.normalize_chunks((chunks, -1), shape=(n, recipe.columns), dtype=dtype)
    token = tokenize(recipe, seed, n, sizes, dtype)
    name = type(recipe).__name__.lower()
    x = da.map_blocks(
        _feature_block,
        recipe,
        seed,
        chunks=sizes,
        dtype=dtype,
        meta=np.empty((0, 0), dtype=dtype),
        name=f"{name}-features-{token}",
    )
    y = da.map_blocks(
        _label_block,
        recipe,
        seed,
        chunks=sizes[:1],
        dtype=np.int64,
        meta=np.empty(0, dtype=np.int64),
        name=f"{name}-classes-{token}",
    )
    return x, y


def _feature_block(recipe: Recipe, seed: int, block_info: Any = None) -> Array:
    info = block_info[None]
    start, stop = info["array-location"][0]
    return _features(recipe, seed, start, stop, info["dtype"])


def _label_block(recipe: Recipe, seed: int, block_info: Any = None) -> Array:
    start, stop = block_info[None]["array-location"][0]
    return _labels(recipe, seed, start, stop)
