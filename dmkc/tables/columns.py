"""The recipe as a transformer of scikit-learn, for frames in memory and lazy ones."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dmkc.display import advance, stage
from dmkc.errors import UserError
from dmkc.tables.frames import as_frame, is_lazy, of_parts
from dmkc.tables.recipe import MISSING, MOST_SHOWN, Recipe
from dmkc.tables.summary import Summary, added, summarised


class TableColumns(TransformerMixin, BaseEstimator):
    """Columns of numbers from a table of numbers, truth values, categories, dates and gaps.

    Numbers stay as they are (estimators scale them), dates become days since 1970, truth values a
    column `name=True` of zeros and ones, and a category such a column `name=value` for each of its
    50 most frequent values.  Estimators scale the columns of a category by one number, so that it
    weighs no more than a number does.  Columns that are constant, empty or seem to name rows are
    left out.  Frames of pandas, Dask (lazily) and polars are taken, and xarray Datasets of 1-D
    variables.

    Parameters
    ----------
    missing : {"refuse", "drop", "impute"}
        What is done about rows with missing values in columns that are used.  "impute" takes the
        mean of a column of numbers and no category, and adds a column `name=missing`.
    kinds : dict or None
        Kinds of columns by name where they should not be guessed: "number", "boolean", "category",
        "date", "duration".
    include : list of names
        Columns to use though they are constant or seem to name rows.
    exclude : list of names
        Columns to leave out.

    Attributes
    ----------
    recipe_ : Recipe
        What is made of every column.
    summaries_ : dict
        What was found in every column.
    feature_names_in_ : ndarray
        The columns of the table of the fit.

    Examples
    --------
    >>> import pandas as pd
    >>> from dmkc import TableColumns
    >>> frame = pd.DataFrame({"age": [31, 62, 47], "plan": ["free", "paid", "free"]})
    >>> TableColumns().fit_transform(frame)
       age  plan=free  plan=paid
    0   31        1.0        0.0
    1   62        0.0        1.0
    2   47        1.0        0.0
    """

    recipe_: Recipe
    summaries_: dict[Any, Summary]

    def __init__(
        self,
        missing: str = "refuse",
        *,
        kinds: Mapping[Any, str] | None = None,
        include: Sequence[Any] = (),
        exclude: Sequence[Any] = (),
    ) -> None:
        self.missing = missing
        self.kinds = kinds
        self.include = include
        self.exclude = exclude

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what is made of the columns of `X`; a lazy frame is read once."""
        if self.missing not in MISSING:
            raise UserError(f"`missing` must be one of {', '.join(MISSING)}, not {self.missing!r}.")
        frame = as_frame(X)
        self.summaries_ = summaries(frame)
        self.recipe_ = Recipe.decided(
            self.summaries_,
            missing=self.missing,
            kinds=self.kinds,
            include=self.include,
            exclude=self.exclude,
        )
        self.feature_names_in_ = np.array(list(self.summaries_), dtype=object)
        self.n_features_in_ = len(self.summaries_)
        return self

    def transform(self, X: Any) -> Any:
        """The columns of numbers of `X`, with its index; lazy where `X` is.

        Categories that the fit had not seen are all zeros, which a warning says of frames in
        memory.
        """
        check_is_fitted(self, "recipe_")
        return numbers_of(X, self.recipe_)

    def keep_in(self, model: Any) -> Any:
        """Keep the recipe in a model that was fitted on the columns of `transform`; return it.

        Its `predict` then takes tables like that of the fit, also after it was saved and loaded.
        """
        check_is_fitted(self, "recipe_")
        check_is_fitted(model)
        made = len(self.recipe_.made)
        if model.n_features_in_ != made:
            raise UserError(
                f"The model was fitted on {model.n_features_in_} columns, but {made} are made of "
                "the table; fit it on what transform gives."
            )
        model.table_ = self.recipe_.as_json()
        return model

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`."""
        check_is_fitted(self, "recipe_")
        return np.array(self.recipe_.made, dtype=object)


def numbers_of(X: Any, recipe: Recipe) -> Any:
    """The columns of numbers that a recipe makes of a frame."""
    frame = as_frame(X)
    if is_lazy(frame):
        meta = recipe.apply(frame._meta).numbers
        return frame.map_partitions(_numbers, recipe, meta=meta)
    applied = recipe.apply(frame)
    for sentence in strangers(applied.unknown):
        warnings.warn(sentence, UserWarning, stacklevel=3)
    return applied.numbers


def summaries(frame: Any) -> dict[Any, Summary]:
    """What the columns of a frame hold, in one pass over it."""
    with stage("looking at the columns"):
        parts = of_parts(frame, _summaries)
    return {name: added([part[name] for part in parts]) for name in parts[0]}


def strangers(unknown: Mapping[str, Counter[str]]) -> list[str]:
    """Sentences about categories that a fit had not seen."""
    found = []
    for name, counts in unknown.items():
        shown = ", ".join(repr(text) for text, _ in counts.most_common(MOST_SHOWN))
        more = f" and {len(counts) - MOST_SHOWN} more" if len(counts) > MOST_SHOWN else ""
        found.append(
            f"Column {name!r}: {sum(counts.values())} rows hold values that have no column of "
            f"their own ({shown}{more}); they count as none of its categories."
        )
    return found


def _summaries(frame: pd.DataFrame) -> dict[Any, Summary]:
    found = {}
    for number, name in enumerate(frame.columns):
        advance(number, len(frame.columns), f"column {name}")
        found[name] = summarised(frame[name])
    return found


def _numbers(part: pd.DataFrame, recipe: Recipe) -> pd.DataFrame:
    return recipe.apply(part).numbers
