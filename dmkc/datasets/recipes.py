"""The distributions behind the generated data sets, one small class each.

A recipe first draws the classes of a segment of rows and then their features from the same
stream, so that the classes alone can be made cheaply.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dmkc.errors import UserError

Array = NDArray[Any]

# Numbers of streams and of layouts are part of every value: change none of them.
_LAYOUT_SEGMENT = 2**48 - 1
_WAVES = np.maximum(6 - np.abs(np.arange(1, 22) - np.array([[11], [15], [7]])), 0.0)
_WAVE_PAIRS = np.array([[0, 1], [0, 2], [1, 2]])


class Recipe(Protocol):
    """What `rows` needs to know of a distribution."""

    number: ClassVar[int]

    @property
    def columns(self) -> int: ...
    def labels(self, rng: np.random.Generator, rows: int) -> Array: ...
    def features(self, rng: np.random.Generator, y: Array) -> Array: ...


def stream(seed: int, number: int, segment: int) -> np.random.Generator:
    """The random numbers of one segment of one recipe; different keys are independent streams."""
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise UserError(f"The seed is {seed!r}; use a whole number from 0 to 2**64 - 1.")
    key = np.array([int(seed), (number << 48) | segment], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


@dataclass(frozen=True)
class Ringnorm:
    """Breiman's ringnorm: N(0, 4 I) around N(a 1, I), a = 2 / sqrt(d)."""

    d: int = 20
    number: ClassVar[int] = 1

    def __post_init__(self) -> None:
        at_least(self.d, 1, "d")

    @property
    def columns(self) -> int:
        return self.d

    def labels(self, rng: np.random.Generator, rows: int) -> Array:
        return rng.integers(2, size=rows)

    def features(self, rng: np.random.Generator, y: Array) -> Array:
        normal = rng.standard_normal((len(y), self.d))
        inner = (y == 1)[:, None]
        return np.where(inner, normal + 2 / math.sqrt(self.d), 2 * normal)


@dataclass(frozen=True)
class Waveform:
    """Breiman's waveforms: random mixtures of two of three triangles, at 21 points.

    `noise` adds that many columns of pure noise (19 in the larger classic set); `classes` chooses
    the classes drawn, all equally likely, which keep their numbers in y.
    """

    noise: int = 0
    classes: tuple[int, ...] = (0, 1, 2)
    number: ClassVar[int] = 2

    def __post_init__(self) -> None:
        at_least(self.noise, 0, "noise")
        object.__setattr__(self, "classes", tuple(self.classes))
        if not self.classes or not set(self.classes) <= {0, 1, 2}:
            raise UserError(f"classes is {self.classes}; choose among the classes 0, 1 and 2.")

    @property
    def columns(self) -> int:
        return 21 + self.noise

    def labels(self, rng: np.random.Generator, rows: int) -> Array:
        return np.array(self.classes)[rng.integers(len(self.classes), size=rows)]

    def features(self, rng: np.random.Generator, y: Array) -> Array:
        share = rng.random((len(y), 1))
        first, second = _WAVES[_WAVE_PAIRS[y]].transpose(1, 0, 2)
        x = rng.standard_normal((len(y), self.columns))
        x[:, :21] += share * first + (1 - share) * second
        return x


@dataclass(frozen=True)
class Blobs:
    """Spherical normal clusters around `centers`: a number of them, or their coordinates.

    A number of centres is drawn uniformly from the cube [-box, box]^d, fixed by `layout`.
    """

    d: int = 2
    centers: Any = 3
    spread: float = 1.0
    box: float = 10.0
    layout: int = 0
    number: ClassVar[int] = 3

    def __post_init__(self) -> None:
        at_least(self.d, 1, "d")
        at_least(self.spread, 0, "spread")
        if isinstance(self.centers, int | np.integer):
            at_least(int(self.centers), 1, "centers")
            rng = stream(self.layout, self.number, _LAYOUT_SEGMENT)
            points = rng.uniform(-self.box, self.box, (int(self.centers), self.d))
        else:
            points = np.asarray(self.centers, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.d or not len(points):
            raise UserError(
                f"centers has shape {points.shape}; give a number of centres or an array of "
                f"(centres, d={self.d})."
            )
        # Tuples keep the recipe hashable and comparable.
        object.__setattr__(self, "centers", tuple(map(tuple, points.tolist())))

    @property
    def columns(self) -> int:
        return self.d

    def labels(self, rng: np.random.Generator, rows: int) -> Array:
        return rng.integers(len(self.centers), size=rows)

    def features(self, rng: np.random.Generator, y: Array) -> Array:
        return np.array(self.centers)[y] + self.spread * rng.standard_normal((len(y), self.d))


@dataclass(frozen=True)
class _Lifted:
    """Two curves in a plane of d dimensions turned at random by `layout`, plus normal noise."""

    d: int = 2
    noise: float = 0.1
    layout: int = 0
    number: ClassVar[int] = 0

    def __post_init__(self) -> None:
        at_least(self.d, 2, "d")
        at_least(self.noise, 0, "noise")

    @property
    def columns(self) -> int:
        return self.d

    def curve(self, rng: np.random.Generator, y: Array) -> tuple[Array, Array]:
        raise NotImplementedError

    def labels(self, rng: np.random.Generator, rows: int) -> Array:
        return rng.integers(2, size=rows)

    def features(self, rng: np.random.Generator, y: Array) -> Array:
        across, up = self.curve(rng, y)
        # Gram-Schmidt and sums by element give the same bits with every linear-algebra library.
        first, second = stream(self.layout, self.number, _LAYOUT_SEGMENT).standard_normal(
            (2, self.d)
        )
        first = first / math.sqrt((first * first).sum())
        second = second - (first * second).sum() * first
        second = second / math.sqrt((second * second).sum())
        noise = self.noise * rng.standard_normal((len(y), self.d))
        return across[:, None] * first + up[:, None] * second + noise


@dataclass(frozen=True)
class Rings(_Lifted):
    """Two concentric rings: class 0 of radius 1, class 1 of radius `factor`."""

    factor: float = 0.5
    number: ClassVar[int] = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.factor < 1:
            raise UserError(f"factor is {self.factor}; use a ratio of radii between 0 and 1.")

    def curve(self, rng: np.random.Generator, y: Array) -> tuple[Array, Array]:
        angle = rng.uniform(0, 2 * np.pi, len(y))
        radius = np.where(y == 1, self.factor, 1.0)
        return radius * np.cos(angle), radius * np.sin(angle)


@dataclass(frozen=True)
class Moons(_Lifted):
    """Two interleaved half circles of radius 1."""

    number: ClassVar[int] = 5

    def curve(self, rng: np.random.Generator, y: Array) -> tuple[Array, Array]:
        angle = rng.uniform(0, np.pi, len(y))
        lower = y == 1
        across = np.where(lower, 1 - np.cos(angle), np.cos(angle))
        return across, np.where(lower, 0.5 - np.sin(angle), np.sin(angle))


def at_least(value: float, least: float, name: str) -> None:
    """Refuse a parameter that is too small, or not a number."""
    if not value >= least:
        raise UserError(f"{name} is {value}; use a number of at least {least}.")
