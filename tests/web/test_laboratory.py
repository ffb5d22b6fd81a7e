"""The laboratory in a browser, where Chromium is installed: as people see it, and use it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.browser import chromium, needs_browser
from tests.patience import LIMIT_S
from tests.web.visits import LOOKS, Command, Visit

pytestmark = [pytest.mark.process, needs_browser]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = Command("dashboard")
    yield command.url
    command.close()
    assert command.process.stdout is not None
    command.process.stdout.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


class LaboratoryVisit(Visit):
    """The laboratory in a page."""

    def __init__(self, browser: Any, url: str, width: int, scheme: str) -> None:
        super().__init__(browser, url, width, scheme)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.show("laboratory")
        self.page.locator(".lab-first").wait_for()

    def open(self, first: str) -> None:
        """One of the scenarios to begin with."""
        self.page.locator(".lab-first").get_by_role("button", name=first).click()
        self.page.locator(".lab-controls").wait_for()

    @property
    def position(self) -> str:
        return self.text(".lab-position")

    @property
    def slider(self) -> Any:
        return self.page.get_by_role("slider", name="Step")

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def press(self, key: str) -> None:
        self.page.locator(".lab-player").press(key)


@pytest.fixture
def visit(browser, url) -> Iterator[Any]:
    visits: list[LaboratoryVisit] = []

    def open_page(width: int = 1600, scheme: str = "light") -> LaboratoryVisit:
        visits.append(LaboratoryVisit(browser, url, width, scheme))
        return visits[-1]

    yield open_page
    for one in visits:
        assert one.errors == []
        one.context.close()


def expect(shown: Any) -> Any:
    """Something on the page, of which an expectation is polled for."""
    from playwright.sync_api import expect

    expect.set_options(timeout=LIMIT_S * 1e3)
    return expect(shown)


def told(page: Any, selector: str) -> list[str]:
    return [str(text) for text in page.locator(selector).all_inner_texts()]


def test_a_scenario_steps_forwards_and_backwards(visit):
    one = visit()
    one.open("x1 two fail")
    assert one.position == "1 / 41"
    first = one.text(".lab-said"), told(one.page, ".lab-then li"), one.text(".lab-state")
    assert first[0] == "1 submits 1:0: r1"
    assert first[1][1] == "1 -> * REQ 1.1: 1:0"
    assert one.page.get_by_role("button", name="Back", exact=True).is_disabled()
    one.page.get_by_role("button", name="Next", exact=True).click()
    assert one.position == "2 / 41"
    assert one.text(".lab-said") == "2 submits 2:0: r2"
    one.press("ArrowRight")
    one.press("ArrowRight")
    assert one.position == "4 / 41"
    for _ in range(3):
        one.press("ArrowLeft")
    again = one.text(".lab-said"), told(one.page, ".lab-then li"), one.text(".lab-state")
    assert again == first


def test_keys_and_the_slider_reach_every_step(visit):
    one = visit()
    one.open("dtp two holders")
    one.press("End")
    assert one.position == "17 / 17"
    assert one.page.get_by_role("button", name="Next", exact=True).is_disabled()
    one.press("Home")
    assert one.position == "1 / 17"
    one.slider.focus()
    one.slider.press("ArrowRight")
    one.slider.press("ArrowRight")
    assert one.position == "3 / 17"
    assert "step 3 of 17" in one.slider.get_attribute("aria-valuetext")
    one.slider.press("End")
    assert one.position == "17 / 17"


def test_playing_goes_on_by_itself_until_it_is_stopped(visit):
    one = visit()
    one.open("dtp two holders")
    one.page.get_by_label("Speed").select_option("fast")
    one.page.get_by_role("button", name="Play", exact=True).click()
    expect(one.page.locator(".lab-position")).to_have_text("17 / 17")
    expect(one.page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    one.press(" ")
    pause = one.page.get_by_role("button", name="Pause", exact=True)
    expect(pause).to_have_attribute("aria-pressed", "true")
    one.press("ArrowLeft")
    expect(pause).to_have_count(0)


def test_the_state_marks_what_a_step_changed(visit):
    one = visit()
    one.open("dtp two holders")
    one.press("ArrowRight")
    cell = one.page.locator(".lab-state tr", has_text="delivered").first.locator("td").first
    assert "lab-changed" in cell.get_attribute("class")
    assert "m1" in cell.inner_text()
    one.press("ArrowRight")
    assert "lab-changed" not in (cell.get_attribute("class") or "")


def test_a_counterexample_shows_where_a_promise_breaks(visit):
    one = visit()
    one.open("x1 two fail")
    breaches = told(one.page, ".lab-breaches > li")
    assert [text.split()[0] for text in breaches] == ["O3i", "O6", "N2"]
    assert "number 1 is 1:0 at 3 and 2:0 at 5" in breaches[1]
    assert one.page.locator(".lab-proof").count() == 0
    one.page.get_by_role("button", name=re.compile(r"^Step \d+: 5 confirms")).click()
    assert one.position == "41 / 41"
    assert any("N2 breaks" in text for text in told(one.page, ".lab-proof"))
    assert "5 confirms 2:0, order key #1" in told(one.page, ".lab-then .proves")
    assert one.page.locator(".lab-proves").count() == 1
    one.page.get_by_role("button", name="Diagram of O6").click()
    one.page.locator(".lab-witness svg .halo").first.wait_for()


def test_the_same_story_under_other_rules_breaks_nothing(visit):
    one = visit()
    one.open("x1 two fail")
    one.page.get_by_role("button", name="x1 two fail safe").first.click()
    one.page.get_by_role("heading", name="x1 two fail safe").wait_for()
    assert one.page.locator(".lab-violated").count() == 0
    assert "breaks no promise" in one.text(".lab-badges")


def test_a_scenario_is_changed_and_played_again(visit):
    one = visit()
    one.open("x1 two fail")
    one.page.get_by_role("button", name="Change it").click()
    editor = one.page.get_by_role("textbox", name="Change commands")
    text = editor.input_value()
    editor.fill(text.replace("crash 1", "crush 1"))
    one.page.get_by_role("button", name="Play it").click()
    says = one.page.locator(".lab-editing [role=status]")
    expect(says).to_contain_text("line 27: crush 1: 'crush' is not a command")
    editor.fill(text.replace("crash 1\n", ""))
    one.page.get_by_role("button", name="Play it").click()
    one.page.get_by_role("heading", name="x1 two fail, changed by you").wait_for()
    one.press("ArrowRight")
    one.page.locator(".lab-diagram svg", has_text="Step 2").wait_for()
    assert "crash 1" not in told(one.page, ".lab-text li")
    one.page.get_by_role("button", name="As it was").click()
    one.page.get_by_role("heading", name="x1 two fail", exact=True).wait_for()


def test_a_step_has_its_diagram_and_its_line(visit):
    one = visit()
    one.open("dtp two holders")
    one.press("ArrowRight")
    one.page.locator(".lab-diagram svg", has_text="Step 2").wait_for()
    assert one.page.locator(".lab-diagram .halo").count() > 0
    current = one.page.locator(".lab-text [aria-current=step]")
    assert current.inner_text() == "submit 1 m1"
    assert one.page.locator(".lab-stage .lab-acts").count() == 1


def test_stops_are_chosen(visit):
    one = visit()
    one.open("x1 two fail")
    one.page.get_by_label("Stop at").select_option("fault")
    one.page.get_by_role("button", name="Next", exact=True).click()
    assert one.text(".lab-said") == "crash 1"
    one.page.get_by_label("Stop at").select_option("proof")
    one.page.get_by_role("button", name="Next", exact=True).click()
    assert one.page.locator(".lab-proof").count() == 3


def test_scenarios_are_found_by_their_words(visit):
    one = visit()
    search = one.page.get_by_label("Search")
    search.fill("token lost partition-that-never-was")
    assert one.text(".lab-found").startswith("0 of")
    search.fill("circle fc x1")
    search.fill("three messages circle")
    shown = one.page.locator(".lab-item:visible")
    assert any("x2 cycle paper" in text for text in shown.all_inner_texts())
    search.fill("")
    one.page.get_by_label("only those that break a promise").check()
    shown_texts = shown.all_inner_texts()
    assert len(shown_texts) > 10
    assert all("breaks " in text for text in shown_texts)
    shown.first.click()
    one.page.locator(".lab-controls").wait_for()
    assert one.page.locator(".lab-item[aria-current=true]").count() == 1


def test_two_engines_stand_side_by_side(visit):
    one = visit()
    one.page.get_by_role("tab", name="Two engines").click()
    one.page.get_by_label("First engine").select_option("totem")
    one.page.get_by_label("Second engine").select_option("template")
    one.page.get_by_label("messages", exact=True).fill("60")
    one.page.get_by_label("rate").fill("2000")
    one.page.get_by_role("button", name="Compare").click()
    measures = one.page.locator(".lab-measures")
    measures.wait_for()
    assert told(one.page, ".lab-measures thead th") == ["totem", "template"]
    order = measures.locator("tr", has_text="One order").locator("td")
    assert order.all_inner_texts() == ["yes", "no"]
    assert one.page.locator(".lab-side svg").count() == 2
    assert one.page.locator(".lab-side").first.locator(".lab-differs").count() == 0
    assert one.page.locator(".lab-side").last.locator(".lab-differs").count() > 0


def test_a_comparison_that_makes_no_sense_says_why(visit):
    one = visit()
    one.page.get_by_role("tab", name="Two engines").click()
    one.page.get_by_label("messages", exact=True).fill("200")
    one.page.get_by_label("rate").fill("1")
    one.page.get_by_role("button", name="Compare").click()
    state = one.page.locator(".lab-comparison [role=status]")
    expect(state).to_contain_text("raise the rate, or send fewer")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_nothing_is_out_of_reach(visit, width, scheme):
    """For those who see little or use no mouse: axe finds nothing, and nothing is cut off."""
    one = visit(width, scheme)
    assert one.complaints() == []
    one.open("x1 two fail")
    one.page.get_by_role("button", name=re.compile(r"^Step \d+: 3 confirms")).click()
    one.page.locator(".lab-diagram svg").first.wait_for()
    assert one.complaints() == []
    assert not one.too_wide()
    one.page.get_by_role("tab", name="Two engines").click()
    one.page.get_by_role("button", name="Compare").click()
    one.page.locator(".lab-measures").wait_for()
    assert one.complaints() == []
    assert not one.too_wide()
