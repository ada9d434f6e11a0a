"""The wheel, installed where no checkout is: it imports, fits, reports and loads."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dmkc.datasets import make_blobs

PROJECT = Path(__file__).parents[2]
SOURCES = ("dmkc", "pyproject.toml", "README.md", "LICENSE")
FIT = (
    "fit",
    "x.npy",
    "--method",
    "mkc",
    "--clusters",
    "2",
    "--seed",
    "0",
    "--rank",
    "20",
    "--out",
    "run",
)
LOAD = """
import numpy as np, zarr, dmkc
rows, labels = np.load("x.npy"), zarr.open_array(store="run/labels.zarr", mode="r")[:]
assert np.array_equal(dmkc.load("run/model.zarr").predict(rows), labels)
print(dmkc.__file__)
"""

pytestmark = pytest.mark.slow


def said(command, folder):
    """What a command prints in a folder, with nothing of this process's paths in its way."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, since a build folder left in the checkout would hide missing files."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        if (PROJECT / name).is_dir():
            without = shutil.ignore_patterns("__pycache__")
            shutil.copytree(PROJECT / name, folder / "copy" / name, ignore=without)
        else:
            shutil.copy(PROJECT / name, folder / "copy")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", "."]
    said([*pip, "./copy"], folder)
    return next(folder.glob("dmkc-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The commands of a fresh environment that borrows all packages but dmkc from this one."""
    folder = tmp_path_factory.mktemp("fresh")
    said([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], folder)
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index"]
    said([*pip, wheel], folder)
    packages = said(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder
    )
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    # A line of a .pth file adds a folder but does not read the .pth files in it, so that an
    # editable installation of the checkout stays out.
    Path(packages, "borrowed.pth").write_text("\n".join(borrowed))
    return python.parent


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    files = (
        p for p in (PROJECT / "dmkc").rglob("*") if p.is_file() and "__pycache__" not in p.parts
    )
    wanted = {p.relative_to(PROJECT).as_posix() for p in files}
    packed = {n for n in zipfile.ZipFile(wheel).namelist() if n.startswith("dmkc/")}
    assert packed == wanted and "dmkc/report/templates/page.html" in packed


def test_the_installed_wheel_works_in_an_empty_folder(installed, tmp_path):
    assert said([installed / "dmkc", "--version"], tmp_path).startswith("dmkc ")
    np.save(tmp_path / "x.npy", make_blobs(200, 4, 2, seed=3)[0])
    said([installed / "dmkc", *FIT], tmp_path)
    report = (tmp_path / "run" / "report.html").read_text()
    assert "What are my clusters?" in report and "prefers-color-scheme: dark" in report
    where = Path(said([installed / "python", "-c", LOAD], tmp_path))
    assert where.is_relative_to(installed.parent)
