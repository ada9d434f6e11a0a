"""Reports: complete, self-contained, well-formed and safe to open."""

import copy
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from dmkc import Gaussian, MultipleKernelClustering, Polynomial
from dmkc.datasets import make_blobs, make_ringnorm
from dmkc.report import write_report
from dmkc.report.facts import cautions, snippet

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Checker(HTMLParser):
    """Collects ids, links and tags, and complains about tags that do not match."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.tags, self.words = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        values = dict(attrs)
        assert len(values) == len(attrs), (tag, attrs)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [v for k, v in attrs if k.split(":")[-1] in ("href", "src", "srcset")]

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.words.append(data)


def read(path):
    source = path.read_text(encoding="utf-8")
    page = Checker()
    page.feed(source)
    page.close()
    assert page.open == []
    return source, page, re.sub(r"\s+", " ", " ".join(page.words))


@pytest.fixture(scope="module")
def rows():
    return make_ringnorm(700, 5, seed=1, dtype=np.float64)


@pytest.fixture(scope="module")
def model(rows):
    return MultipleKernelClustering(random_state=0, rank=30).fit(rows[0])


@pytest.fixture(scope="module")
def written(model, rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "r.html"
    X, y = rows
    return write_report(model, X, path, title="Rings", truth=y, seconds=1.25, notes=["A remark."])


def test_report_says_what_it_should(written, model):
    source, page, words = read(written)
    assert source.startswith("<!DOCTYPE html>")
    assert page.tags.count("h1") == 1 and page.tags.count("circle") == 700
    order = ["What are my clusters?", "Can I trust them?", "What distinguishes them?", "What next?"]
    heads = re.findall(r"<h2>(.*?)</h2>", source)
    assert heads == order and source.index(order[-1]) < source.index("Details of the fit")
    wanted = (
        "Rings",
        "700 rows of 5 columns in 2 clusters",
        "A remark.",
        "k-means",
        "adjusted Rand index",
        "Gaussian, width 0.5",
        "random_state=0",
        "relabelings",
        "numpy",
        "prefers-color-scheme: dark",
        "@media print",
        f"{model.C_:.4g}",
    )
    for text in wanted:
        assert text in words, text


def test_report_is_self_contained(written):
    source, page, _ = read(written)
    assert not re.search(r"https?:|//\w+\.\w", source)
    assert page.tags.count("script") == 2 and "@import" not in source
    assert "default-src 'none'" in source and len(source) < 1_000_000
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in page.links)
    assert len(page.ids) == len(set(page.ids))
    inside = {link[1:] for link in page.links if link.startswith("#")}
    inside |= set(re.findall(r"url\(#([^)]+)\)", source))
    assert inside and inside <= set(page.ids)


def test_the_same_model_gives_the_same_report(written, model, rows, tmp_path):
    X, y = rows
    path = tmp_path / "again.html"
    write_report(model, X, path, title="Rings", truth=y, seconds=1.25, notes=["A remark."])
    assert path.read_bytes() == written.read_bytes()


def test_everything_from_outside_is_escaped(rows, tmp_path, quick_reports):
    bad = "<script>alert('x')</script>"
    X = pd.DataFrame(rows[0], columns=[bad, '"><img src=x onerror=y>', "a&b", "d", "$e ${f}"])
    truth = np.where(rows[1] == 0, bad, "fine")
    model = MultipleKernelClustering(random_state=0, rank=20).fit(X)
    path = write_report(model, X, tmp_path / "r.html", title=bad, truth=truth, notes=[bad])
    source, page, words = read(path)
    assert source.count("<script") == 2 and "<script>alert" not in source and "<img" not in source
    assert page.tags.count("script") == 2 and "img" not in page.tags
    assert words.count(bad) >= 4 and "$e ${f}" in words
    assert bad in json.loads(re.search(r'id="rows">(.*?)</script>', source)[1])["columns"]


def test_lazy_rows_and_several_clusters(tmp_path, quick_reports):
    X, y = make_blobs(600, 3, 3, seed=2, chunks=150)
    model = MultipleKernelClustering(3, random_state=0, rank=20).fit(X)
    del model.labels_  # as in a model read from a file
    _, page, words = read(write_report(model, X, tmp_path / "r.html", title="x", truth=y))
    assert "in cluster 2" in words and "Typical rows" in words
    assert page.tags.count("circle") == 600


def test_sparse_rows_and_one_cluster(tmp_path, quick_reports):
    X = sp.random_array((300, 12), density=0.3, format="csr", rng=np.random.default_rng(0))
    y = np.arange(300) % 2
    model = MultipleKernelClustering(2, random_state=0, rank=20).fit(X)
    _, _, words = read(write_report(model, X, tmp_path / "r.html", title="x", truth=y))
    assert "k-means: standardised" in words
    model = MultipleKernelClustering(1, random_state=0, rank=20).fit(X)
    _, _, words = read(write_report(model, X, tmp_path / "r.html", title="x"))
    assert "k-means: standardised" not in words and "Agreement" not in words


def test_cautions_in_plain_words(model):
    assert cautions(model, np.array([400, 300])) == []
    assert "outliers" in cautions(model, np.array([690, 10]))[0]
    limited = copy.copy(model)
    limited.converged_ = False
    assert "increase max_iter" in cautions(limited, np.array([400, 300]))[0]
    limited.converged_ = True
    limited.set_params(random_state=None)
    assert "random_state" in cautions(limited, np.array([400, 300]))[0]


def test_the_snippet_repeats_the_fit(rows):
    X, _ = rows
    bank = [Polynomial(3), Gaussian(0.25), "linear"]
    model = MultipleKernelClustering(
        kernels=bank, rank=20, init=("k-means", "pca"), random_state=5, tol=0.01, verbose=0
    ).fit(X)
    code = snippet(model, *X.shape)
    assert "tol=0.01" in code and "norm" not in code and "verbose" not in code
    space: dict = {"X": X}
    exec(code.replace("X = ...", "X = X"), space)
    np.testing.assert_array_equal(space["labels"], model.labels_)


def test_what_scrolls_is_reachable_by_keyboard(tmp_path, rows, quick_reports):
    model = MultipleKernelClustering(random_state=0, rank=20).fit(rows[0])
    source, page, _ = read(write_report(model, rows[0], tmp_path / "r.html", title="t"))
    assert page.tags.count("pre") + page.tags.count("table") == source.count('tabindex="0"') > 2
