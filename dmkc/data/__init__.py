"""Input data of any supported kind as row blocks, and results back in the input's own form."""

from dmkc.data.blocks import Block, Lazy, Read
from dmkc.data.container import Container
from dmkc.data.entry import as_rows
from dmkc.data.rows import Rows
from dmkc.data.weights import Weighted, check_weights, numbers_of, parted, with_weights

__all__ = [
    "Block",
    "Container",
    "Lazy",
    "Read",
    "Rows",
    "Weighted",
    "as_rows",
    "check_weights",
    "numbers_of",
    "parted",
    "with_weights",
]
