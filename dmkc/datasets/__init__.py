"""Data sets to try the library on: generated, bundled, or read from a folder."""

from .embedded import Dataset, load_digits, load_wdbc
from .folder import available, load
from .generators import (
    make_blobs,
    make_moons,
    make_ringnorm,
    make_rings,
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
    "make_moons",
    "make_ringnorm",
    "make_rings",
    "make_waveform",
    "rows",
]
