"""Parameters of estimators, each declared once: name, kind, default and meaning.

A declaration serves the checks of a fit, the docstring of the class, the options and the params
file of the command line, and the report.
"""

from dmkc.clusterers.parameters.declaration import (
    Parameter,
    check_signature,
    init_from,
    with_parameters,
)
from dmkc.clusterers.parameters.kinds import (
    Flag,
    Integer,
    IntegerOrRange,
    IntegerOrRows,
    Integers,
    Kernels,
    Kind,
    Number,
    OneOf,
    OneOfOrRows,
    Other,
    RowsOrShare,
    Seed,
    Starts,
)

__all__ = [
    "Flag",
    "Integer",
    "IntegerOrRange",
    "IntegerOrRows",
    "Integers",
    "Kernels",
    "Kind",
    "Number",
    "OneOf",
    "OneOfOrRows",
    "Other",
    "Parameter",
    "RowsOrShare",
    "Seed",
    "Starts",
    "check_signature",
    "init_from",
    "with_parameters",
]
