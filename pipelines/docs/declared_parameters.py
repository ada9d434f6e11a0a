"""Extension of the documentation's reader of sources: docstrings that are made at run time.

Estimators declare their parameters, and their docstrings get the section about these when a class
is made, which a reader of sources does not see.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe


class DeclaredParameters(griffe.Extension):
    """Takes the docstrings of classes that declare parameters from the imported classes."""

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        if "declared" not in cls.members or cls.docstring is None:
            return
        made = vars(importlib.import_module(cls.module.path))[cls.name]
        cls.docstring.value = inspect.getdoc(made) or ""
