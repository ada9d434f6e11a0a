"""Input data of any supported kind as row blocks, and results back in the input's own form."""

from dmkc.data.blocks import Block, Lazy, Read
from dmkc.data.entry import as_rows
from dmkc.data.record import (
    BlockRows,
    RowRecord,
    as_record,
    check_weights,
    split_weights,
    with_weights,
)
from dmkc.data.rows import Container, Rows

__all__ = [
    "Block",
    "BlockRows",
    "Container",
    "Lazy",
    "Read",
    "RowRecord",
    "Rows",
    "as_record",
    "as_rows",
    "check_weights",
    "split_weights",
    "with_weights",
]
