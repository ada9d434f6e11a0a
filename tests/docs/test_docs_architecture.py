"""The page about the code agrees with the code."""

import re
import tomllib
from pathlib import Path

import pytest

from dmkc import extending

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "architecture.md").read_text("utf-8")


def test_every_layer_is_in_the_table_of_folders():
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["tool"]
    layers = contracts["importlinter"]["contracts"][0]["layers"]
    names = {name.strip() for layer in layers for name in layer.split("|")}
    table = PAGE.partition("\n## Folders")[2].partition("\n## ")[0]
    assert names == set(re.findall(r"`dmkc/(\w+)(?:/|\.py)`", table))


def test_files_that_the_page_names_are_there():
    named = set(re.findall(r"`([a-z_]+(?:/\w+)*(?:/|\.py))`", PAGE))
    assert len(named) > 30
    places = (PROJECT, PROJECT / "dmkc")
    assert [n for n in named if not any((place / n).exists() for place in places)] == []


def test_the_examples_are_files():
    quoted = re.findall(r'^--8<-- "(.+)"$', PAGE, re.M)
    assert [Path(name).stem for name in quoted] == ["rank_kernel", "direction_clusterer"]
    assert all((PROJECT / name).is_file() for name in quoted)


@pytest.mark.parametrize("name", extending.__all__)
def test_what_plug_ins_need_is_listed(name):
    table = PAGE.partition("\n## Code of your own")[2].partition("\n## ")[0]
    assert f"`{name}`" in table
