"""Photographs reports: that of the tour's fit, and that of the customers of docs/tables.md.

python docs/images/make_report_picture.py [PROFILE.html] (needs chromium and playwright)

PROFILE.html is what ydata-profiling writes of the same customers, to stand beside.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from dmkc import MultipleKernelClustering
from dmkc.cli import main as dmkc
from dmkc.datasets import make_rings
from dmkc.report import write_report

HERE = Path(__file__).parent
FIT = (
    "fit customers.csv --index-column customer_id --exclude segment,since --impute-missing "
    "--seed 0 --out run --quiet"
)


def main() -> None:
    X, truth = make_rings(3000, noise=0.07, factor=0.3, seed=0)
    model = MultipleKernelClustering(n_clusters=2, random_state=0).fit(X)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as tools:
        folder = Path(name)
        write_report(model, X, folder / "rings.html", title="Two rings", truth=truth)
        customers(folder)
        browser = tools.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )

        def opened(path: Path, width: int, height: int, theme: str = "light") -> Any:
            size: Any = {"width": width, "height": height}
            scheme: Any = theme
            page = browser.new_context(viewport=size, color_scheme=scheme).new_page()
            page.goto(path.as_uri(), wait_until="domcontentloaded")
            return page

        report = folder / "run" / "report.html"
        keep(opened(folder / "rings.html", 1100, 1060), "report")
        keep(opened(report, 1100, 1180), "report-clusters")
        page = opened(report, 1100, 1000)
        page.locator("#trust").scroll_into_view_if_needed()
        page.evaluate("document.querySelector('#trust').scrollIntoView()")
        keep(page, "report-trust")
        page.evaluate("document.querySelector('#columns').scrollIntoView()")
        keep(page, "report-columns")
        page = opened(report, 1100, 800, "dark")
        page.click(".picker [data-pick='1']")
        page.evaluate("document.querySelector('#map').scrollIntoView({block: 'center'})")
        page.locator("button.row:visible").first.click()
        keep(page, "report-row-dark")
        keep(opened(report, 400, 1000, "dark"), "report-narrow-dark")
        if len(sys.argv) > 1:
            page = opened(Path(sys.argv[1]).absolute(), 1100, 1000)
            page.evaluate("document.querySelectorAll('h2, h1')[1].scrollIntoView()")
            keep(page, "ydata-profiling")
        browser.close()


def customers(folder: Path) -> None:
    """Make the table of the page about tables, and cluster it."""
    page = (HERE.parent / "tables.md").read_text("utf-8")
    block = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.M)
    assert block is not None
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        exec(block[1], {})
        assert dmkc(FIT.split()) == 0


def keep(page: Any, name: str) -> None:
    """What a page shows, at two thirds of its size and in few colours."""
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    share = 1.0 if shot.width < 500 else 0.7
    small = shot.resize((round(shot.width * share), round(shot.height * share)), Image.LANCZOS)
    small.quantize(256, Image.Quantize.MAXCOVERAGE).save(HERE / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
