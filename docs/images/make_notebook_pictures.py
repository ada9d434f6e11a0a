"""Photographs the notebooks for the first page of the site.

python docs/images/make_notebook_pictures.py (needs chromium, nbconvert and playwright)
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from nbconvert import HTMLExporter
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
NOTEBOOKS = HERE.parents[1] / "notebooks"
PLACES = {
    "quick-start": "Two rings",
    "big-zarr-store": "Training on a part",
    "choosing-kernels": "Let the library try",
    "constraints": "Six rounds",
    "which-columns": "How strict?",
    "multiple-kernel-k-means": "What the weights say",
    "neighbour-graphs": "The graph",
}
"""The first picture below this heading is what is seen."""
SEEN = """(words) => {
  const heading = [...document.querySelectorAll('h2')].find((h) => h.textContent.includes(words));
  const after = (el) => heading.compareDocumentPosition(el) & Node.DOCUMENT_POSITION_FOLLOWING;
  const picture = [...document.querySelectorAll('.jp-OutputArea img')].find(after);
  const box = picture.getBoundingClientRect();
  window.scrollTo(0, window.scrollY + box.top + box.height / 2 - window.innerHeight / 2);
}"""


def main() -> None:
    exporter = HTMLExporter()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tools:
        browser = tools.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        size = {"width": 900, "height": 620}
        page = browser.new_context(viewport=size, device_scale_factor=1).new_page()
        for name, heading in PLACES.items():
            text, _ = exporter.from_filename(str(NOTEBOOKS / f"{name}.ipynb"))
            html = Path(folder) / f"{name}.html"
            html.write_text(text, encoding="utf-8")
            page.goto(html.as_uri(), wait_until="domcontentloaded")
            page.evaluate(SEEN, heading)
            page.screenshot(path=HERE / f"notebook-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
