"""All kernels by name."""

from __future__ import annotations

from dmkc.kernels.base import Kernel
from dmkc.kernels.kernels import (
    ColumnGaussian,
    Columns,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
)
from dmkc.kernels.neighbours import Neighbours
from dmkc.registry import Registry

KERNELS: Registry[Kernel] = Registry("dmkc.kernels", "kernel", Kernel)  # type: ignore[type-abstract]
_BUILT_IN: dict[str, type[Kernel]] = {
    "linear": Linear,
    "polynomial": Polynomial,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "cosine": Cosine,
    "columns": Columns,
    "column-gaussian": ColumnGaussian,
    "neighbours": Neighbours,
}
for _name, _cls in _BUILT_IN.items():
    KERNELS.register(_name, _cls)

register_kernel = KERNELS.register
