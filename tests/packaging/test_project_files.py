"""Files about the project say what the project says elsewhere."""

import re
from pathlib import Path

import yaml

import dmkc

PROJECT = Path(__file__).parents[2]


def test_the_citation_names_this_version_and_the_papers_of_the_readme():
    found = yaml.safe_load((PROJECT / "CITATION.cff").read_text("utf-8"))
    assert found["version"] == dmkc.__version__
    readme = (PROJECT / "README.md").read_text("utf-8")
    papers = " ".join(readme.partition("## References")[2].partition("## Licence")[0].split())
    assert len(found["references"]) == len(re.findall(r"\d\. [A-Z]", papers))
    for paper in found["references"]:
        assert paper["title"] in papers and str(paper["year"]) in papers
        assert paper.get("doi", "") in papers
        assert all(author["family-names"] in papers for author in paper["authors"])
        assert paper["notes"] in dmkc.__all__


def test_what_runs_before_a_commit_is_what_make_lint_runs():
    config = yaml.safe_load((PROJECT / ".pre-commit-config.yaml").read_text("utf-8"))
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert [hook["entry"].split()[-1] for hook in hooks] == ["lint"]
    assert {repo["repo"] for repo in config["repos"]} == {"local"}


def test_contributing_names_targets_and_folders_that_exist():
    text = (PROJECT / "CONTRIBUTING.md").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*##", (PROJECT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"`make ([a-z-]+)`", text)) <= targets
    named = re.findall(r"`((?:tests|dmkc|docs|pipelines)/[\w/.-]*)`", text)
    assert [name for name in named if not (PROJECT / name).exists() and "NAME" not in name] == []
