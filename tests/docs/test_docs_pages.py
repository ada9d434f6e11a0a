"""The pages: links resolve, generated pages are up to date, the tour runs."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

PROJECT = Path(__file__).parents[2]
SKIPPED = {".venv", "site", "demo-output", "node_modules", ".git"}
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.M)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


def markdown_files():
    found = PROJECT.rglob("*.md")
    return sorted(p for p in found if not SKIPPED & set(p.relative_to(PROJECT).parts[:-1]))


def anchor(heading):
    """The name that a heading is linked by."""
    words = re.sub(r"[`*_]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", words))


def broken_links(path, text):
    """Relative links of a Markdown text that lead nowhere."""
    prose = CODE.sub("", FENCE.sub("", text))
    for target in LINK.findall(prose):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        name, _, place = unquote(target).partition("#")
        there = path if not name else path.parent / name
        if not there.exists():
            yield f"{path.relative_to(PROJECT)} links to {target}, which does not exist"
        elif place and there.suffix == ".md":
            headings = re.findall(r"^#+\s+(.*)$", FENCE.sub("", there.read_text("utf-8")), re.M)
            if place not in {anchor(heading) for heading in headings}:
                yield f"{path.relative_to(PROJECT)} links to {target}, which has no such heading"


def test_relative_links_of_all_pages_resolve():
    pages = markdown_files()
    assert PROJECT / "README.md" in pages
    assert [bad for page in pages for bad in broken_links(page, page.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "text", ["[a](missing.md)", "![a](images/none.png)", "[a](mkc.md#none)", "[a](../none)"]
)
def test_broken_links_are_seen(text):
    assert len(list(broken_links(PROJECT / "docs" / "index.md", text))) == 1


@pytest.mark.parametrize(
    "text", ["[a](mkc.md#the-idea)", "[a](../README.md)", "[a](https://x.org)", "`[a](none.md)`"]
)
def test_good_links_are_left_alone(text):
    assert list(broken_links(PROJECT / "docs" / "index.md", text)) == []


def test_scaling_page_shows_the_measured_results(monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT / "pipelines" / "docs"))
    import scaling

    page = scaling.PAGE.read_text("utf-8")
    assert page == scaling.page(), "run: python pipelines/docs/scaling.py"


def test_every_public_name_is_in_the_reference():
    import dmkc
    from dmkc import clusters, constraints, datasets, metrics

    text = "\n".join(p.read_text("utf-8") for p in (PROJECT / "docs" / "api").glob("*.md"))
    described = set(re.findall(r"^::: (\S+)$", text, re.M))
    hidden = {"dmkc.__version__", "dmkc.metrics.METRICS", "dmkc.clusters.Config"}
    hidden |= {"dmkc.clusters.InsecureClusterWarning"}
    for module in (dmkc, metrics, datasets, constraints, clusters):
        wanted = {f"{module.__name__}.{name}" for name in module.__all__}
        assert wanted - hidden <= described


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tour.md", "tables.md"])
def test_every_command_of_a_page_runs(monkeypatch, name):
    monkeypatch.syspath_prepend(str(PROJECT / "pipelines" / "docs"))
    import tour

    page = (PROJECT / "docs" / name).read_text("utf-8")
    printed = tour.run_blocks(page)
    assert len(printed) == len(re.findall(r"^```(?:sh|python)$", page, re.M)) > 4
    same = tour.filled(page, printed)
    assert FENCE.sub("", same) == FENCE.sub("", page)


def test_steps_of_a_page(monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT / "pipelines" / "docs"))
    import first_time

    page = "```sh\n# a remark\nmake demo   # builds\nls \\\n  -l\n```\n\n```text\nno\n```\n"
    page += "\n```python\nimport x\n\nprint(1)\n```\n"
    found = list(first_time.steps("p.md", page))
    assert [step.code for step in found] == [
        "make demo   # builds",
        "ls \\\n  -l",
        "import x\n\nprint(1)\n",
    ]
    assert found[2].shown == "Python: print(1)"
    readme = (PROJECT / "README.md").read_text("utf-8")
    first = next(first_time.steps("README.md", readme))
    assert first.code.startswith("make demo")


@pytest.mark.parametrize(
    ("code", "outcome"), [("true", "works"), ("echo gone; exit 3", "**fails** (3): gone")]
)
def test_outcome_of_a_step(monkeypatch, tmp_path, code, outcome):
    monkeypatch.syspath_prepend(str(PROJECT / "pipelines" / "docs"))
    import first_time

    said, seconds = first_time.run(first_time.Step("p.md", "sh", code), tmp_path)
    assert said == outcome and seconds >= 0
