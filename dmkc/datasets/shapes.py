"""Shapes in the plane whose clusters are no blobs, made of blurred arcs, rings and spots.

They imitate the five shapes of Huang et al., "Ultra-Scalable Spectral Clustering and Ensemble
Clustering" (IEEE TKDE, 2020), from their names and numbers of clusters. The published rows were not
at hand: places and shares were chosen so that the majority accuracy of k-means is about the
published one, and other figures can be compared in size only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .recipes import Array, at_least

WHOLE = 360.0


@dataclass(frozen=True)
class Piece:
    """One cluster: a band along an arc of an ellipse, or a spot, blurred by normal noise."""

    share: float
    """Rows in it, in proportion to the other pieces'."""
    at: tuple[float, float] = (0.0, 0.0)
    """The middle of the ellipse."""
    radii: tuple[float, float] = (0.0, 0.0)
    """Half axes of the ellipse; none for a normal spot."""
    inner: float = 1.0
    """Where the band begins, as a share of the radii: 0 is a filled ellipse, 1 a line."""
    arc: tuple[float, float] = (0.0, WHOLE)
    """From where to where it goes round, in degrees, before it is turned."""
    turn: float = 0.0
    """Degrees by which the ellipse is turned about its middle."""
    blur: float = 0.0
    """Standard deviation of the noise."""


def _ring(share: float, radius: float, blur: float, at: tuple[float, float] = (0.0, 0.0)) -> Piece:
    return Piece(share, at, (radius, radius), blur=blur)


def _polar(radius: float, degrees: float) -> tuple[float, float]:
    angle = math.radians(degrees)
    return radius * math.cos(angle), radius * math.sin(angle)


@dataclass(frozen=True)
class _Shape:
    """Rows of several pieces; `noise` multiplies all blurs."""

    noise: float = 1.0
    number: ClassVar[int] = 0
    pieces: ClassVar[tuple[Piece, ...]] = ()

    def __post_init__(self) -> None:
        at_least(self.noise, 0, "noise")

    @property
    def columns(self) -> int:
        return 2

    def labels(self, rng: np.random.Generator, rows: int) -> Array:
        ends = np.cumsum([piece.share for piece in self.pieces])
        return np.searchsorted(ends[:-1] / ends[-1], rng.random(rows), side="right")

    def features(self, rng: np.random.Generator, y: Array) -> Array:
        around, across = rng.random((2, len(y)))
        blurs = self.noise * np.array([piece.blur for piece in self.pieces])
        x = blurs[y][:, None] * rng.standard_normal((len(y), 2))
        arcs = np.radians([piece.arc for piece in self.pieces])
        angle = arcs[y, 0] + (arcs[y, 1] - arcs[y, 0]) * around
        # The square root spreads rows evenly over the area of a band.
        inner = np.array([piece.inner**2 for piece in self.pieces])[y]
        radius = np.sqrt(inner + (1 - inner) * across)
        radii = np.array([piece.radii for piece in self.pieces])[y]
        along, up = radii[:, 0] * radius * np.cos(angle), radii[:, 1] * radius * np.sin(angle)
        turns = np.radians([piece.turn for piece in self.pieces])
        cos, sin = np.cos(turns)[y], np.sin(turns)[y]
        x[:, 0] += along * cos - up * sin
        x[:, 1] += along * sin + up * cos
        return x + np.array([piece.at for piece in self.pieces])[y]


@dataclass(frozen=True)
class TwoBananas(_Shape):
    """Two crescents that reach into each other."""

    number: ClassVar[int] = 6
    pieces: ClassVar[tuple[Piece, ...]] = (
        Piece(1, (-0.5, -0.15), (1.0, 1.0), arc=(0, 180), blur=0.1),
        Piece(1, (0.5, 0.15), (1.0, 1.0), arc=(180, WHOLE), blur=0.1),
    )


@dataclass(frozen=True)
class SmilingFace(_Shape):
    """The outline of a face, two eyes and a mouth."""

    number: ClassVar[int] = 7
    pieces: ClassVar[tuple[Piece, ...]] = (
        _ring(3, 1.0, 0.03),
        Piece(2.5, (-0.35, 0.3), blur=0.07),
        Piece(2.5, (0.35, 0.3), blur=0.07),
        Piece(3, radii=(0.6, 0.6), arc=(205, 335), blur=0.03),
    )


@dataclass(frozen=True)
class ConcentricCircles(_Shape):
    """Three rings around one point, with rows in proportion to their lengths."""

    number: ClassVar[int] = 8
    pieces: ClassVar[tuple[Piece, ...]] = (
        _ring(0.25, 0.25, 0.04),
        _ring(0.6, 0.6, 0.04),
        _ring(1.0, 1.0, 0.04),
    )


@dataclass(frozen=True)
class CirclesAndGaussians(_Shape):
    """Three spots with two rings around each, and two spots of their own."""

    number: ClassVar[int] = 9
    pieces: ClassVar[tuple[Piece, ...]] = (
        *(
            piece
            for at in ((-2.0, 1.2), (2.0, 1.2), (0.0, -1.6))
            for piece in (
                Piece(1, at, blur=0.12),
                _ring(1, 0.7, 0.05, at),
                _ring(1.4, 1.2, 0.05, at),
            )
        ),
        Piece(1, (0.0, 2.6), blur=0.25),
        Piece(1, (2.6, -2.0), blur=0.25),
    )


@dataclass(frozen=True)
class Flower(_Shape):
    """Six petals, each an outline around a filling, and the middle that they surround."""

    number: ClassVar[int] = 10
    pieces: ClassVar[tuple[Piece, ...]] = (
        Piece(1, blur=0.2),
        *(
            piece
            for turn in range(0, 360, 60)
            for piece in (
                Piece(1.6, _polar(2.0, turn), (1.1, 0.7), turn=turn, blur=0.04),
                Piece(1, _polar(2.0, turn), (0.6, 0.25), 0.0, turn=turn, blur=0.04),
            )
        ),
    )
