"""Parameters that several estimators have; a class may change a default or the text."""

from __future__ import annotations

from typing import Any

from dmkc.clusterers.parameters import (
    Integer,
    IntegerOrRange,
    Kernels,
    Number,
    OneOf,
    OneOfOrRows,
    Other,
    Parameter,
    RowsOrShare,
    Seed,
    Starts,
)
from dmkc.kernels.sample import CHOICES as LANDMARK_CHOICES

AUTO_CLUSTERS = (2, 10)
"""Numbers of clusters that "auto" tries."""
ROWS_PER_CLUSTER = 10
"""With "auto", no more clusters are tried than leave this many rows for each."""
MOST_TRIES = 10_000
"""Starts, members or masks, each of which takes memory."""
SCALES = ("standard", "minmax", "if-mixed")
NAMES = """Names are "linear", "polynomial", "gaussian", "laplacian", "cosine", with a parameter as
in "gaussian:0.5" and the view or column that a kernel sees as in "gaussian:0.5@pixels" ("@*" is one
for each view)."""
SAME_LABELS = """The same seed gives the same labels whatever the chunks, the workers and the
scheduler are."""

N_CLUSTERS = Parameter("n_clusters", Integer(least=1), 2, "Number of clusters.")
KERNELS = Parameter("kernels", Kernels(none=True), None, f"The bank.  {NAMES}")
TWELVE = KERNELS.but(
    text=f"""The bank.  None is "twelve": seven Gaussian kernels whose widths are 1/8 to 8 times the
    largest distance between rows, four polynomial ones and the linear one.  {NAMES}"""
)
SCALE = Parameter(
    "scale",
    OneOf(SCALES, none=True),
    "if-mixed",
    """What columns are divided by: their standard deviation, their range, or nothing; "if-mixed" is
    the first where columns seem to have different units (the largest standard deviation is more
    than five times the median; for a column of two values half its range is taken) and nothing
    where they share one, such as pixels, or have been scaled already.  They are always shifted to
    mean zero.""",
)
NORM = Parameter(
    "norm",
    Number(least=1, finite=False),
    2.0,
    "q >= 1 of the constraint |kernel weights|_q <= 1; 1 gives sparse weights.",
)
RANK = Parameter(
    "rank", Integer(least=1), 100, "Number of landmarks of the Nyström maps, shared by all kernels."
)
OPEN_RANK = RANK.but(
    kind=Integer(least=1, none=True),
    default=None,
    text="""Number of landmarks of the Nyström maps; None is eight per cluster, at least 100 and at
    most 300.""",
)
LANDMARKS = Parameter(
    "landmarks",
    OneOfOrRows(LANDMARK_CHOICES),
    "uniform",
    "Where the maps are anchored: sampled rows, centroids, or these rows.",
)
_LINKS = Other(noun="links, path", shown="FILE", none=True)
MUST_LINK = Parameter(
    "must_link",
    _LINKS,
    None,
    """Pairs of rows that are in one cluster: a table of two columns, or the path of a CSV, .npy or
    Zarr file.  Rows are named by their numbers, or by their labels where X has an index.""",
)
CANNOT_LINK = Parameter(
    "cannot_link", _LINKS, None, "Pairs of rows that are in different clusters."
)
INIT = Parameter("init", Starts(), "auto", "Starts.")
N_INIT = Parameter(
    "n_init",
    Integer(least=1, most=MOST_TRIES),
    4,
    'How many "random" starts, and how many components per kernel for "pca".',
)
K_MEANS_STARTS = N_INIT.but(
    default=10,
    text="Starts of k-means on a sample, the best of which is carried on to all rows.",
)
REFINE = Parameter(
    "refine",
    OneOf(("best", "all")),
    "best",
    "Which starts are carried on from the sample to all rows.",
)
NORMALISE = Parameter(
    "normalise",
    OneOf(("cosine", "trace")),
    "cosine",
    """What centred kernels are divided by: the root of their diagonal, so that k(x, x) = 1 for
    every row, or the mean of the diagonal.""",
)
MAX_FEATURES = Parameter(
    "max_features",
    Integer(least=1),
    2048,
    "Features of all kernels together, at most; each kernel keeps those that vary most.",
)
SAMPLE_ROWS = Parameter(
    "sample_rows",
    Integer(least=2),
    8192,
    "Size of the uniform sample on which widths, landmarks and starts are found.",
)
WHOLE_SAMPLE = SAMPLE_ROWS.but(
    text=f"""{SAMPLE_ROWS.text}  Data with no more rows than this are fitted on all rows from the
    beginning.""",
)
TRAIN_ROWS = Parameter(
    "train_rows",
    RowsOrShare(none=True),
    None,
    """Train on a uniform subset of this many rows (or this share, below 1), in memory, and label
    all rows in one pass; None trains on all rows.""",
)
SCALED_TRAIN_ROWS = TRAIN_ROWS.but(
    text=f"""{TRAIN_ROWS.text}  Scaling and k-means starts are still found on a sample of
    `sample_rows` rows, where that is larger.""",
)
POLISH = Parameter(
    "polish",
    Integer(least=0),
    0,
    "Relabelings of all rows, at most, after training on a subset.",
)
POLISH_STEPS = POLISH.but(text="Steps of k-means on all rows, at most, after training on a subset.")
TOL = Parameter("tol", Number(above=0), 1e-3, "Relative fall of the objective at which to stop.")
TOL_OR_ZERO = TOL.but(
    kind=Number(least=0), default=1e-5, text="Relative change of the objective at which to stop."
)
MAX_ITER = Parameter(
    "max_iter",
    Integer(least=1),
    50,
    "Largest number of relabelings, of the sample and again of all rows.",
)
SOLVER = Parameter(
    "solver",
    OneOf(("clarabel", "cvxpy")),
    "clarabel",
    "Master problem: the dual solved directly, or the paper's cone program through cvxpy.",
)
DTYPE = Parameter(
    "dtype",
    OneOf(("auto", "float32", "float64")),
    "auto",
    'Precision of features; "auto" takes float64 while they fit in 64 MB.',
)
FEATURE_MODE = Parameter(
    "feature_mode",
    OneOf(("auto", "persist", "recompute", "store")),
    "auto",
    """Keep kernel columns in memory, make them anew on every scan, or write them once to a
    temporary Zarr store; "auto" decides by size, memory and cost.""",
)
RECOMPUTED = FEATURE_MODE.but(
    text="""Keep kernel columns in memory, make them anew on every scan ("auto"), or write them once
    to a temporary Zarr store.""",
)
STORE_PATH = Parameter(
    "store_path",
    Other(noun="str", shown="FOLDER", none=True),
    None,
    "Existing folder for that store, which all workers can reach.",
)
RANDOM_STATE = Parameter(
    "random_state",
    Seed(none=True),
    None,
    f"Seed of sample, landmarks and starts.  {SAME_LABELS}",
)
VERBOSE = Parameter(
    "verbose",
    Integer(least=0, flags=True),
    0,
    "1 shows a live line, or in a notebook a panel; 2 a line per scan.",
)
CLIENT = Parameter(
    "client",
    Other(noun="distributed.Client", none=True),
    None,
    "Cluster to run on; None takes the current client, or threads if there is none.",
)
FEATURES = (
    KERNELS,
    SCALE,
    RANK,
    LANDMARKS,
    SAMPLE_ROWS,
    TRAIN_ROWS,
    POLISH,
    DTYPE,
    FEATURE_MODE,
    STORE_PATH,
)
"""What a clusterer of kernel features needs for them, and for training on a subset."""
RUNNING = (RANDOM_STATE, VERBOSE, CLIENT)
"""What every estimator ends with."""


def cluster_range(n_clusters: Any, n_rows: int | None = None) -> tuple[int, int]:
    """The fewest and the most clusters that a parameter allows; "auto" adapts to the rows."""
    found = IntegerOrRange(("auto",)).check("n_clusters", n_clusters)
    if found == "auto":
        low, high = AUTO_CLUSTERS
        return low, high if n_rows is None else max(low, min(high, n_rows // ROWS_PER_CLUSTER))
    return found if isinstance(found, tuple) else (found, found)
