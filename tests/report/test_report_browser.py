"""Reports in a real browser: both themes, wide and narrow, readable and reachable by keyboard."""

import shutil

import numpy as np
import pandas as pd
import pytest

from dmkc import (
    Gaussian,
    HierarchicalKernelKMeans,
    KMeans,
    Linear,
    MarginDistributionClustering,
    MultipleKernelClustering,
    NonparallelPlaneClustering,
    TableColumns,
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
CHARTS = """() => [...document.querySelectorAll('figure svg, svg.lanes')].map((svg) => {
  const box = svg.getBoundingClientRect();
  return {label: svg.getAttribute('aria-label'), width: box.width, height: box.height,
          drawn: svg.querySelectorAll('path, use, image, rect, circle').length};
})"""
OPENED = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
SHOWN = """(what) => [...document.querySelectorAll(what)]
  .filter((el) => el.checkVisibility() && getComputedStyle(el).opacity > 0.5)
  .map((el) => el.dataset.k)"""
COLOURS = """(what) => [...document.querySelectorAll(what)].map((el) => {
  const style = getComputedStyle(el);
  return style.backgroundColor === 'rgba(0, 0, 0, 0)' ? style.fill : style.backgroundColor;
})"""
OVERFLOW = """() => ({
  page: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  outside: [...document.querySelectorAll('body *')]
    .filter((el) => !el.closest('.scroll, pre, svg, .picker'))
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
        if not (chart["label"] and chart["drawn"] > 1)
        or not (200 < chart["width"] < room and chart["height"] > 60)
    ]


def unreachable(page):
    """What scrolls sideways and cannot be reached by the Tab key."""
    reached = set()
    for _ in range(150):
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
    page.evaluate(OPENED)
    assert poor_charts(page) == []
    assert page.evaluate(OVERFLOW) == {"page": 0, "outside": []}
    assert weak_texts(page) == []
    assert unreachable(page) == []
    assert complaints == []


def test_faults_are_seen(reports, view):
    page, complaints = view
    page.goto(reports["mkc"].as_uri())
    page.add_style_tag(content="dt { color: #777777 } h1 { width: 2000px }")
    page.add_style_tag(
        content="figure:first-child svg { width: 50px } pre { width: 9rem; white-space: pre }"
    )
    page.evaluate(OPENED)
    page.evaluate("document.querySelectorAll('pre').forEach((el) => { el.tabIndex = -1; })")
    page.evaluate("console.error('a complaint')")
    assert {text for text, _ in weak_texts(page)} >= {"rows", "columns"}
    assert page.evaluate(OVERFLOW)["page"] > 0
    assert len(poor_charts(page)) >= 1
    assert unreachable(page)
    assert complaints[-1] == "error: a complaint"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A report of a table of mixed columns, with three clusters, and the table."""
    rng = np.random.default_rng(0)
    group = np.arange(600) % 3
    frame = pd.DataFrame(
        {
            "age": np.rint(25 + 15 * group + rng.normal(0, 4, 600)),
            "plan": np.array(["free", "basic", "paid"])[group],
            "signup": pd.Timestamp("2024-01-01") + pd.to_timedelta(40 * group, "D"),
        },
        index=[f"C{i:03d}" for i in range(600)],
    )
    columns = TableColumns().fit(frame)
    model = KMeans(3, scale="standard", random_state=0).fit(columns.transform(frame))
    path = tmp_path_factory.mktemp("table") / "report.html"
    return write_report(columns.keep_in(model), frame, path, title="Customers"), frame


def test_picking_a_cluster_filters_all_charts(table, view):
    page, complaints = view
    complaints.clear()
    page.goto(table[0].as_uri())
    kinds = ("#map circle", ".lanes g[data-k]", ".clusters article", "ol.rules li", "tr[data-k]")
    for what in kinds:
        assert set(page.evaluate(SHOWN, what)) == {"0", "1", "2"}, what
    page.click(".picker [data-pick='1']")
    for what in kinds:
        assert set(page.evaluate(SHOWN, what)) == {"1"}, what
    assert page.get_attribute(".picker [data-pick='1']", "aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert set(page.evaluate(SHOWN, "#map circle")) == {"0", "1", "2"}
    assert complaints == []


def test_a_row_shows_its_values(table, view):
    page, complaints = view
    complaints.clear()
    path, frame = table
    page.goto(path.as_uri())
    assert page.is_hidden("#row")
    button = page.locator("button.row").nth(4)
    name = button.inner_text()
    button.click()
    assert page.is_visible("#row") and name in page.inner_text("#row h3")
    cells = dict(
        zip(
            page.locator("#row tbody th").all_inner_texts(),
            page.locator("#row tbody td:nth-child(2)").all_inner_texts(),
            strict=True,
        )
    )
    row = frame.loc[name]
    wanted = {"age": f"{row['age']:.0f}", "plan": row["plan"], "signup": str(row["signup"])[:10]}
    assert cells == wanted
    page.keyboard.press("Escape")
    assert page.is_hidden("#row")
    assert page.evaluate("document.activeElement.textContent") == name
    assert complaints == []


def test_the_map_by_pointer_and_by_keyboard(table, view):
    page, complaints = view
    complaints.clear()
    page.goto(table[0].as_uri())
    page.locator("#map").scroll_into_view_if_needed()
    point = page.locator("#map circle").nth(30)
    box = point.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    assert "Row C" in page.inner_text("#tip") and "age: " in page.inner_text("#tip")
    tip = page.locator("#tip").bounding_box()
    assert tip["x"] >= 0 and tip["x"] + tip["width"] <= page.viewport_size["width"]
    page.mouse.click(x, y)
    assert page.is_visible("#row")
    assert page.evaluate(OVERFLOW) == {"page": 0, "outside": []} and weak_texts(page) == []
    page.keyboard.press("Escape")
    page.focus("#map")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    named = page.inner_text("#tip b")
    page.keyboard.press("Enter")
    assert page.inner_text("#row h3") == named
    page.keyboard.press("Enter")  # on the button that closes
    assert page.is_hidden("#row") and complaints == []


def test_a_cluster_has_one_colour(table, view):
    page, _ = view
    page.goto(table[0].as_uri())
    seen = []
    for k in range(3):
        found: set = set()
        for what in (
            f"#map circle[data-k='{k}']:not(.u)",
            f".sizes li[data-k='{k}'] .bar i",
            f".lanes g[data-k='{k}'] rect",
            f".clusters article[data-k='{k}'] .spark g rect",
        ):
            found |= set(page.evaluate(COLOURS, what))
        assert len(found) == 1, (k, found)
        seen += found
    assert len(set(seen)) == 3


def test_charts_are_dark_on_a_dark_page_and_light_on_paper(reports, browser):
    fills = {}
    for theme in THEMES:
        page = browser.new_context(color_scheme=theme).new_page()
        page.goto(reports["mkc"].as_uri())
        page.evaluate(OPENED)
        fills[theme] = {
            what: page.evaluate(f"getComputedStyle(document.querySelector('{what}')).fill")
            for what in ("#map circle", ".lanes rect", ".lanes text", "details figure svg text")
        }
        page.emulate_media(media="print")
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == "rgb(255, 255, 255)" and weak_texts(page) == []
        assert page.is_hidden(".picker") and page.is_hidden("nav")
    assert all(fills["light"][what] != fills["dark"][what] for what in fills["light"])


def test_on_paper_all_is_there(table, browser):
    page = browser.new_page()
    page.goto(table[0].as_uri())
    page.click(".picker [data-pick='1']")
    document = page.pdf(format="A4")
    assert document.startswith(b"%PDF") and document.count(b"/Type /Page") > 3
    assert page.evaluate("document.querySelector('details').open")
    assert set(page.evaluate(SHOWN, "#map circle")) == {"0", "1", "2"}


def test_without_a_script_all_is_there(table, browser):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(table[0].as_uri())
    assert page.locator("#map circle").count() == 600
    assert page.is_hidden(".picker") and page.is_visible(".lanes >> nth=0")
    assert "Click on a point" not in page.inner_text("main")
