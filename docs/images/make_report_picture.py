"""Photographs the report of the tour's fit.

python docs/images/make_report_picture.py (needs chromium and playwright)
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from dmkc import MultipleKernelClustering
from dmkc.datasets import make_rings
from dmkc.report import write_report

HERE = Path(__file__).parent


def main() -> None:
    X, truth = make_rings(3000, noise=0.07, factor=0.3, seed=0)
    model = MultipleKernelClustering(n_clusters=2, random_state=0).fit(X)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tools:
        page_file = Path(folder) / "report.html"
        write_report(model, X, page_file, title="Two rings", truth=truth)
        browser = tools.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        size = {"width": 1100, "height": 900}
        page = browser.new_context(viewport=size, device_scale_factor=0.7).new_page()
        page.goto(page_file.as_uri(), wait_until="domcontentloaded")
        page.screenshot(path=HERE / "report.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
