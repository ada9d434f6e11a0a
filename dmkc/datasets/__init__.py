"""Data sets to try the library on: generated, bundled, or read from a folder."""

from .embedded import Dataset, load_digits, load_wdbc
from .folder import available, load
from .generators import (
    make_blobs,
    make_circles_and_gaussians,
    make_concentric_circles,
    make_flower,
    make_moons,
    make_ringnorm,
    make_rings,
    make_smiling_face,
    make_two_bananas,
    make_waveform,
    rows,
)

__all__ = [
    "Dataset",
    "available",
    "load",
    "load_digits",
    "load_wdbc",
    "make_blobs",
    "make_circles_and_gaussians",
    "make_concentric_circles",
    "make_flower",
    "make_moons",
    "make_ringnorm",
    "make_rings",
    "make_smiling_face",
    "make_two_bananas",
    "make_waveform",
    "rows",
]
