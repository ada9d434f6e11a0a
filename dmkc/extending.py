"""All that a kernel or a method of your own is made from, in one place.

A file of yours imports from here, and ends with `register_kernel` or `register_estimator`.  The
page on architecture (docs/architecture.md) has an example of each.
"""

from dmkc.clusterers.base import Job, KernelClusterer
from dmkc.clusterers.estimator import Picture
from dmkc.clusterers.fits import (
    MAX_ITER_REACHED,
    SETTLED,
    Fit,
    FitEnd,
    Learned,
    Named,
    Stage,
    Step,
    race,
)
from dmkc.clusterers.model import KernelModel, ScoreSpace
from dmkc.clusterers.parameters import (
    Flag,
    Integer,
    Integers,
    Kind,
    Number,
    OneOf,
    OneOfOrRows,
    Other,
    Parameter,
    RowsOrShare,
    Seed,
    Starts,
    shared,
)
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.registry import register_estimator
from dmkc.clusterers.rowset import RowSet
from dmkc.clusterers.starts import Start, starts_on_sample
from dmkc.data import RowRecord, Rows
from dmkc.errors import UserError
from dmkc.kernels import (
    FeatureMap,
    FittedKernel,
    Kernel,
    KernelSample,
    PairwiseKernel,
    Tile,
    register_kernel,
)
from dmkc.kernels.base import Diagonal, Identity, Matrix, StoredMap
from dmkc.scan.base import LeafScan, Scan
from dmkc.scan.multiclass import Scores
from dmkc.scan.requests import Request, ScanRequest, SharedScan

__all__ = [
    "MAX_ITER_REACHED",
    "SETTLED",
    "Diagonal",
    "FeatureMap",
    "Fit",
    "FitEnd",
    "FittedKernel",
    "Flag",
    "Identity",
    "Integer",
    "Integers",
    "Job",
    "Kernel",
    "KernelClusterer",
    "KernelModel",
    "KernelSample",
    "Kind",
    "LeafScan",
    "Learned",
    "Matrix",
    "Named",
    "Number",
    "OneOf",
    "OneOfOrRows",
    "Other",
    "PairwiseKernel",
    "Parameter",
    "Picture",
    "Prepared",
    "Request",
    "RowRecord",
    "RowSet",
    "Rows",
    "RowsOrShare",
    "Scan",
    "ScanRequest",
    "ScoreSpace",
    "Scores",
    "Seed",
    "SharedScan",
    "Stage",
    "Start",
    "Starts",
    "Step",
    "StoredMap",
    "Tile",
    "UserError",
    "race",
    "register_estimator",
    "register_kernel",
    "shared",
    "starts_on_sample",
]
