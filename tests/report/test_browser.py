"""Reports in a browser, where Chromium is installed: as people see them, and use them."""

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tests.browser import chromium, complaints, needs_browser
from tests.report.made import made_sweep, made_trace

from roundelay.report import write_report

pytestmark = [pytest.mark.process, needs_browser]

LOOKS = [(width, scheme) for width in (400, 1600) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """A page with everything on it: figures, claims, verdicts, a timeline, diagrams."""
    home: Path = tmp_path_factory.mktemp("report")
    made_sweep(home / "dtp", "papers/dtp")
    made_trace(home / "traces" / "template", "template")
    made_trace(home / "traces" / "totem", "totem")
    write_report(home, home / "report.html")
    return home / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


class Visit:
    """A page that was opened, and what it said and asked for meanwhile."""

    def __init__(self, browser: Any, path: Path, width: int = 1600, scheme: str = "light") -> None:
        viewport = {"width": width, "height": 900}
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-drawn]")

    @property
    def outside(self) -> list[str]:
        """Requests that left the page."""
        within = ("data:", "blob:")
        return [url for url in self.asked[1:] if not url.startswith(within)]

    def complaints(self) -> list[str]:
        return complaints(self.page)


@pytest.fixture
def visit(browser) -> Iterator[Any]:
    visits: list[Visit] = []

    def open_page(path: Path, *look: Any) -> Visit:
        visits.append(Visit(browser, path, *look))
        return visits[-1]

    yield open_page
    for one in visits:
        one.context.close()


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_it_is_drawn_quiet_and_accessible(report, visit, width, scheme):
    seen = visit(report, width, scheme)
    plots = seen.page.locator(".plot")
    assert plots.count() == 6
    for i in range(plots.count()):
        box = plots.nth(i).locator("svg.main-svg").first.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 200
    assert seen.page.locator(".plot .scatterlayer .trace").count() > 20
    assert seen.page.locator(".plot .barlayer .point").count() > 5
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert seen.page.evaluate(wider) <= 0, "the page scrolls sideways"
    ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 26)")
    assert seen.said == []
    assert seen.outside == []
    assert seen.complaints() == []


def test_colours_follow_the_reader(report, visit):
    seen = visit(report)
    line = seen.page.locator(".plot .scatterlayer .js-line").first
    before = line.evaluate("line => line.style.stroke")
    seen.page.emulate_media(color_scheme="dark")
    seen.page.wait_for_function(
        "before => document.querySelector('.plot .js-line').style.stroke !== before", arg=before
    )


def test_curves_are_hidden_and_shown_with_the_keyboard(report, visit):
    seen = visit(report)
    curves = seen.page.locator("#plot1 .scatterlayer .trace")
    before = curves.count()
    box = seen.page.locator("#plot1-keys input").first
    box.focus()
    seen.page.keyboard.press("Space")
    seen.page.wait_for_function(
        "n => document.querySelectorAll('#plot1 .scatterlayer .trace').length === n", arg=before - 1
    )
    seen.page.keyboard.press("Space")
    seen.page.wait_for_function(
        "n => document.querySelectorAll('#plot1 .scatterlayer .trace').length === n", arg=before
    )


def test_another_measure_is_chosen_with_the_keyboard(report, visit):
    seen = visit(report)
    select = seen.page.locator("select[id$='-y']").first
    axis = seen.page.locator(f"#{select.get_attribute('id').removesuffix('-y')}-axis")
    before = axis.text_content()
    select.focus()
    seen.page.keyboard.press("ArrowDown")
    assert axis.text_content() != before


def test_everything_that_does_something_is_reached_by_tab(report, visit):
    seen = visit(report)
    wanted = seen.page.locator("a, button, select, input, summary, .scroll").evaluate_all(
        "all => all.filter(e => e.checkVisibility()).length"
    )
    seen.page.evaluate("() => { window.reached = new Set(); }")
    for _ in range(wanted + 5):
        seen.page.keyboard.press("Tab")
        seen.page.evaluate("() => { window.reached.add(document.activeElement); }")
    reached = seen.page.evaluate(
        "() => [...window.reached].filter(e => e !== document.body).length"
    )
    assert reached >= wanted


TIMELINE = ".plot:has(.barlayer .point)"
BARS = """place => place.data.filter(bar => bar.type === 'bar' && bar.text[0]).map(bar => ({
    view: bar.hovertemplate.split('<br>')[0], colour: bar.marker.color, at: bar.base[0] }))"""


def test_what_was_done_is_marked_on_the_timeline(report, visit):
    seen = visit(report)
    marks = seen.page.locator(f"{TIMELINE} .annotation-text").all_text_contents()
    assert "2 crash c" in marks
    assert "4 partition {a,b} {c,d,e}" in marks
    lines = seen.page.locator(f"{TIMELINE} .shapelayer path").count()
    assert lines == len(marks) == 6
    boxes = [box.bounding_box() for box in seen.page.locator(f"{TIMELINE} .annotation-text").all()]
    for one, other in combinations(boxes, 2):
        assert not _overlap(one, other), "two marks cover each other"
    narrow = visit(report, 400)
    marks = narrow.page.locator(f"{TIMELINE} .annotation-text").all_text_contents()
    assert marks == ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_view_has_one_colour_and_words_that_can_be_read(report, visit, scheme):
    seen = visit(report, 1600, scheme)
    timeline = seen.page.locator(TIMELINE)
    colours: dict[str, set[str]] = {}
    for bar in timeline.evaluate(BARS):
        if bar["view"].startswith("primary"):
            colours.setdefault(bar["view"], set()).add(bar["colour"])
    assert len(colours) > 3
    assert all(len(used) == 1 for used in colours.values())
    assert len(set.union(*colours.values())) == len(colours), "two views share a colour"
    pairs = timeline.locator(".point:has(text)").evaluate_all(
        """all => all.map(point => [getComputedStyle(point.querySelector('path')).fill,
            getComputedStyle(point.querySelector('text')).fill])"""
    )
    assert len(pairs) > 5
    for ground, ink in pairs:
        if ground.startswith("rgb"):  # Stripes have no words.
            assert _contrast(ground, ink) >= 4.5


def test_a_diagram_opens_below_its_fault(report, visit):
    seen = visit(report)
    seen.page.get_by_text("Diagram of fault 2: crash of c").click()
    image = seen.page.locator("details[open] img")
    seen.page.wait_for_function("() => document.querySelector('details[open] img').naturalWidth")
    assert "crash of c" in image.get_attribute("alt")


def test_what_scrolls_looks_as_if_it_did(report, visit):
    seen = visit(report, 400)
    shadow = "frame => getComputedStyle(frame, '::before').boxShadow"
    frame = seen.page.locator(".scrolled.more-right:visible").first
    assert "more-left" not in frame.get_attribute("class")
    assert frame.evaluate(shadow) != "none"
    frame.locator(".scroll").evaluate("inner => inner.scrollTo(inner.scrollWidth, 0)")
    seen.page.wait_for_selector(".scrolled.more-left:not(.more-right):visible")


@pytest.mark.parametrize("width", [400, 1600])
def test_no_badge_covers_a_heading(report, visit, width):
    seen = visit(report, width)
    claims = seen.page.locator(".claims > li").all()
    assert len(claims) > 10
    for claim in claims:
        chip, title = (claim.locator(part).first.bounding_box() for part in (".chip", "strong"))
        assert not _overlap(chip, title)


def test_good_news_has_not_the_colour_of_an_alarm(visit, tmp_path):
    made_trace(tmp_path / "totem", "totem")
    write_report(tmp_path, tmp_path / "report.html")
    seen = visit(tmp_path / "report.html")
    tile = seen.page.locator(".tiles li", has_text="promises violated")
    assert tile.locator("b").text_content() == "0"
    colour = tile.locator("b").evaluate("number => getComputedStyle(number).color")
    alarm = seen.page.evaluate(
        """() => { const mark = document.createElement('p'); mark.style.color = 'var(--bad)';
            document.body.append(mark); return getComputedStyle(mark).color; }"""
    )
    assert colour != alarm
    assert re.fullmatch(r"Run .+", seen.page.title())


def _overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    return all(
        one[start] < other[start] + other[size] - 0.5
        and other[start] < one[start] + one[size] - 0.5
        for start, size in (("x", "width"), ("y", "height"))
    )


def _contrast(one: str, other: str) -> float:
    """Of two colours as a browser writes them, by the rule of WCAG."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_faults_are_noticed(report, visit, tmp_path):
    """What the tests above look for is found where it is."""
    faulty = tmp_path / "faulty.html"
    faults = (
        "<script>console.log('hello')</script>"
        '<img src="http://127.0.0.1:9/picture.png">'
        '<p style="color:#aaa;background:#fff">pale</p>'
    )
    page = report.read_text().replace("<footer>", f"<footer>{faults}")
    faulty.write_text(page)
    guarded = visit(faulty)
    assert "hello" in guarded.said
    assert any("Content Security Policy" in line for line in guarded.said)
    faulty.write_text(re.sub(r"<meta http-equiv[^>]*>", "", page))
    seen = visit(faulty)
    assert seen.outside == ["http://127.0.0.1:9/picture.png"]
    found = " ".join(seen.complaints())
    assert "image-alt" in found
    assert "color-contrast" in found
