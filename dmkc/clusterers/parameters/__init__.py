"""Parameters of estimators, each declared once: name, kind, default and meaning.

A declaration serves the checks of a fit, the docstring of the class, the options and the params
file of the command line, and the report.
"""

from dmkc.clusterers.parameters.declaration import (
    Flag,
    Integer,
    IntegerOrRange,
    Integers,
    Kernels,
    Kind,
    Number,
    OneOf,
    OneOfOrRows,
    Other,
    Parameter,
    RowsOrShare,
    Seed,
    Starts,
    check_signature,
    init_from,
    with_parameters,
)

__all__ = [
    "Flag",
    "Integer",
    "IntegerOrRange",
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
