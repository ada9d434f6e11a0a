"""Reports in a real browser: both themes, wide and narrow, readable and reachable by keyboard."""

import shutil

import pytest

from dmkc import (
    Gaussian,
    HierarchicalKernelKMeans,
    Linear,
    MarginDistributionClustering,
    MultipleKernelClustering,
    NonparallelPlaneClustering,
)
from dmkc.constraints import random_pairs
from dmkc.datasets import load_digits, load_wdbc
from dmkc.report import write_report

pytestmark = pytest.mark.slow

LEAST_CONTRAST = 4.5
WIDTHS = (1280, 400)
THEMES = ("light", "dark")

# Every piece of text that can be seen, with its colour and the colour behind it.  Text of figures
# lies on the card of its figure.
TEXTS = """() => {
  const parse = (c) => {
    const v = c.match(/[\\d.]+/g).map(Number);
    return v.length < 4 ? [...v, 1] : v;
  };
  const behind = (el) => {
    for (let e = el; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c[3] > 0) return c;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  for (const el of document.querySelectorAll('body *')) {
    const own = [...el.childNodes].filter((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own.length || !el.getClientRects().length) continue;
    const style = getComputedStyle(el);
    const inside = el instanceof SVGElement;
    found.push({
      text: own[0].textContent.trim().slice(0, 40),
      ink: parse(inside ? style.fill : style.color),
      paper: behind(el),
    });
  }
  return found;
}"""
CHARTS = """() => [...document.querySelectorAll('figure svg')].map((svg) => {
  const box = svg.getBoundingClientRect();
  return {label: svg.getAttribute('aria-label'), width: box.width, height: box.height,
          drawn: svg.querySelectorAll('path, use, image').length};
})"""
OVERFLOW = """() => ({
  page: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  outside: [...document.querySelectorAll('body *')]
    .filter((el) => !el.closest('.scroll, pre, svg'))
    .filter((el) => el.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map((el) => el.tagName + '.' + el.className),
})"""
SCROLLED = """() => [...document.querySelectorAll('body *')]
  .filter((el) => ['auto', 'scroll'].includes(getComputedStyle(el).overflowX))
  .filter((el) => el.scrollWidth > el.clientWidth + 1).map((el) => el.textContent.slice(0, 60))"""
FOCUSED = """() => {
  const el = document.activeElement;
  return el === document.body ? null : el.textContent.slice(0, 60);
}"""


def luminance(colour):
    parts = [c / 255 for c in colour[:3]]
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(ink, paper):
    """The contrast ratio of WCAG 2, with see-through ink laid on the paper first."""
    solid = [i * ink[3] + p * (1 - ink[3]) for i, p in zip(ink[:3], paper[:3], strict=True)]
    high, low = sorted((luminance(solid), luminance(paper)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_known_colours():
    assert contrast([0, 0, 0, 1], [255, 255, 255, 1]) == pytest.approx(21)
    assert contrast([119, 119, 119, 1], [255, 255, 255, 1]) == pytest.approx(4.48, abs=0.01)
    assert contrast([0, 0, 0, 0], [255, 255, 255, 1]) == 1


def models():
    """One report for every kind of figure, from data that need no download."""
    tumours, digits = load_wdbc(), load_digits((1, 7))
    must, cannot = random_pairs(tumours.y, 60, random_state=0)
    linked = MarginDistributionClustering(must_link=must, cannot_link=cannot, random_state=0)
    open_ = {"kernels": [Linear(), Gaussian(0.5)], "scale": "auto", "balance": "auto"}
    return {
        "auto": (MultipleKernelClustering(random_state=0, **open_), load_digits((8, 9))),
        "mkc": (MultipleKernelClustering(random_state=0), tumours),
        "odm": (linked, tumours),
        "planes": (NonparallelPlaneClustering(loss="hinge", random_state=0), tumours),
        "hmkkm": (HierarchicalKernelKMeans(2, n_masks=3, random_state=0), digits),
    }


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    import pandas as pd

    folder = tmp_path_factory.mktemp("reports")
    return {
        name: write_report(
            model.fit(pd.DataFrame(data.X, columns=data.columns)),
            pd.DataFrame(data.X, columns=data.columns),
            folder / f"{name}.html",
            title=f"{data.name}, by {name}",
            truth=data.y,
            notes=["A note."],
        )
        for name, (model, data) in models().items()
    }


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    with sync_playwright() as tools:
        opened = tools.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module", params=[(w, t) for w in WIDTHS for t in THEMES], ids=str)
def view(request, browser):
    """An empty page of one width and theme, and what the browser complains about on it."""
    width, theme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
    yield page, complaints
    context.close()


@pytest.fixture(autouse=True)
def needs_a_browser(unavailable):
    if shutil.which("chromium") is None:
        unavailable("chromium is missing; run tests/report/provision install")


def weak_texts(page):
    """Texts whose contrast is too low, and how low it is."""
    found = [(t["text"], contrast(t["ink"], t["paper"])) for t in page.evaluate(TEXTS)]
    return [(text, round(ratio, 2)) for text, ratio in found if ratio < LEAST_CONTRAST]


def poor_charts(page):
    """Charts that are empty, nameless, tiny or wider than the page."""
    room = page.viewport_size["width"]
    return [
        chart
        for chart in page.evaluate(CHARTS)
        if not (chart["label"] and chart["drawn"] > 3)
        or not (200 < chart["width"] < room and chart["height"] > 60)
    ]


def unreachable(page):
    """What scrolls sideways and cannot be reached by the Tab key."""
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        where = page.evaluate(FOCUSED)
        if where is None:
            break
        reached.add(where)
    return sorted(set(page.evaluate(SCROLLED)) - reached)


@pytest.mark.parametrize("name", ["auto", "mkc", "odm", "planes", "hmkkm"])
def test_report_in_a_browser(name, reports, view):
    page, complaints = view
    complaints.clear()
    page.goto(reports[name].as_uri())
    assert len(page.evaluate(CHARTS)) >= 4
    assert poor_charts(page) == []
    assert page.evaluate(OVERFLOW) == {"page": 0, "outside": []}
    assert weak_texts(page) == []
    assert unreachable(page) == []
    assert complaints == []


def test_faults_are_seen(reports, view):
    page, complaints = view
    page.goto(reports["mkc"].as_uri())
    page.add_style_tag(content="dt { color: #777777 } h1 { width: 2000px }")
    page.add_style_tag(content="figure:first-child svg { width: 50px } pre { width: 9rem }")
    page.evaluate("document.querySelector('pre').tabIndex = -1")
    page.evaluate("console.error('a complaint')")
    assert {text for text, _ in weak_texts(page)} >= {"rows", "columns"}
    assert page.evaluate(OVERFLOW)["page"] > 0
    assert len(poor_charts(page)) >= 1
    assert unreachable(page)
    assert complaints[-1] == "error: a complaint"
