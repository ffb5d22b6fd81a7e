"""The page in a browser, with a group of five real nodes."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.browser import chromium, needs_browser
from tests.patience import PATIENCE
from tests.web.visits import LOOKS, Command, Visit, demo

pytestmark = [pytest.mark.process, needs_browser]

ALL = {"a", "b", "c", "d", "e"}
GREY_S = 2.0
"""What the documents promise. As a machine with other work takes longer, one of five counts."""
UNTIL_GREY = """(node) => new Promise((done) => {
    const grey = () => document.querySelector(`#play .node.gone[data-node=${node}]`);
    const button = document.querySelector(`button[aria-label='Kill ${node}']`);
    const start = performance.now();
    new MutationObserver((_, observer) => {
        if (!grey()) return;
        observer.disconnect();
        done((performance.now() - start) / 1000);
    }).observe(document.body, { subtree: true, attributes: true, childList: true });
    button.click();
})"""
"""The seconds from a click until the page shows a node as gone, by the clock of the page."""
PARTS = ("now", "history", "play", "laboratory", "table")


@pytest.fixture(scope="module")
def group(tmp_path_factory) -> Iterator[Command]:
    command = demo(tmp_path_factory.mktemp("demo"))
    yield command
    command.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def visit(browser) -> Iterator[Any]:
    visits: list[Visit] = []

    def open_page(url: str, *look: Any) -> Visit:
        visits.append(Visit(browser, url, *look))
        return visits[-1]

    yield open_page
    for one in visits:
        one.context.close()


def whole(seen: Visit) -> None:
    """Wait until all five nodes are in one primary view."""
    seen.until(
        lambda: (
            seen.nodes("up") == ALL
            and seen.page.locator("#now .ring").count() == 1
            and seen.page.locator("#now .ring.primary").count() == 1
        ),
        "all five in one view",
    )


def test_it_shows_the_group(group, visit):
    seen = visit(group.url)
    whole(seen)
    assert "token" not in seen.page.url
    assert not any("token" in url for url in seen.asked), "no server is told it in an address"
    assert seen.context.cookies() == []
    seen.page.reload()
    seen.page.wait_for_selector("#connection.good")
    assert seen.page.evaluate("document.activeElement.id") == "", "nothing has taken the focus"
    assert seen.page.locator("#now .ring-card h2").text_content() == "Group demo"
    seen.until(lambda: seen.page.locator("#now .token").is_visible(), "the token")
    seen.until(
        lambda: re.fullmatch(r"[\d.,]+/s", seen.page.locator("#now .tiles b").first.text_content()),
        "a rate",
    )
    shown = seen.page.locator("#now .numbers tbody tr")
    assert shown.count() > 10
    shown.nth(2).locator("summary").click()
    assert "in the last seconds" in shown.nth(2).inner_text()
    assert seen.said == []
    assert all(url.startswith(group.url.partition("#")[0]) for url in seen.asked)


def test_a_killed_node_turns_grey_at_once_and_comes_back(group, visit):
    seen = visit(group.url)
    took_s: list[float] = []
    while not took_s or (min(took_s) > GREY_S and len(took_s) < 5):
        whole(seen)
        seen.show("play")
        took_s.append(seen.page.evaluate(UNTIL_GREY, "b"))
        assert seen.page.locator("#play .node.gone").count() == 1
        seen.page.locator("button[aria-label='Kill b'][disabled]").wait_for()
        seen.page.click("button[aria-label='Restart b']")
        seen.show("now")
    whole(seen)
    assert min(took_s) <= GREY_S * PATIENCE, took_s


def test_a_paused_node_is_silent_until_it_goes_on(group, visit):
    seen = visit(group.url)
    whole(seen)
    seen.show("play")
    seen.page.click("button[aria-label='Pause d']")
    seen.page.locator("#play .node.silent[data-node=d]").wait_for()
    seen.show("now")
    seen.until(lambda: "d does not answer" in seen.page.locator("#now .slow").inner_text(), "d")
    seen.show("play")
    seen.page.click("button[aria-label='Go on d']")
    seen.show("now")
    whole(seen)


def test_a_partition_shows_two_rings(group, visit):
    seen = visit(group.url)
    whole(seen)
    seen.show("play")
    seen.page.click("#play button:has-text('Partition')")
    rings = seen.page.locator("#play .ring")
    seen.until(lambda: rings.count() == 2, "two rings")
    seen.until(
        lambda: seen.page.locator("#play .ring.primary").count() == 1, "three of five are primary"
    )
    assert "parted into a, b, c | d, e" in seen.page.locator("#play").inner_text()
    picture = seen.page.locator("#play .ring-picture")
    seen.until(lambda: (picture.get_attribute("aria-label") or "").count("view") == 2, "two views")
    seen.page.click("#play button:has-text('Heal all')")
    seen.show("now")
    whole(seen)


def test_loss_and_load_are_set(group, visit):
    seen = visit(group.url)
    seen.show("play")
    seen.page.locator("#play-loss").focus()
    for _ in range(3):
        seen.page.keyboard.press("ArrowRight")
    seen.until(lambda: "5 % loss" in seen.page.locator("#play").inner_text(), "the loss")
    seen.page.click("#play button:has-text('Heal all')")
    seen.until(lambda: "every datagram" in seen.page.locator("#play").inner_text(), "no loss")
    seen.page.locator("#play label", has_text="nothing").click()
    seen.show("now")
    seen.until(
        lambda: "rests at" in seen.page.locator("#now .tiles").inner_text(), "the token rests"
    )
    seen.show("play")
    seen.page.locator("#play label", has_text="a little").click()


def test_history_opens_the_diagram_of_a_moment(group, visit):
    seen = visit(group.url)
    whole(seen)
    seen.show("play")
    seen.page.click("button[aria-label='Kill e']")
    seen.page.locator("#play .node.gone[data-node=e]").wait_for()
    seen.show("history")
    entries = seen.page.locator("#history .entries button")
    entries.filter(has_text="e gone").first.wait_for()
    assert entries.filter(has_text="kill -9 of e").count() >= 1
    entries.filter(has_text="e gone").first.click()
    picture = seen.page.locator("#history .diagram svg.roundelay")
    picture.wait_for()
    assert picture.locator(".m").count() > 20
    assert seen.page.locator("#history .timeline .mark[data-kind=fault]").count() >= 1
    seen.page.locator("#history .timeline .mark[data-kind=fault]").last.click()
    seen.until(
        lambda: seen.page.locator("#history .entries button[aria-pressed=true]").count() == 1,
        "the moment that was clicked",
    )
    seen.show("play")
    seen.page.click("button[aria-label='Restart e']")
    seen.show("now")
    whole(seen)
    assert seen.said == []


def test_tabs_are_moved_through_with_the_keyboard(group, visit):
    seen = visit(group.url)
    seen.page.focus("#tab-now")
    for part in (*PARTS[1:], PARTS[0]):
        seen.page.keyboard.press("ArrowRight")
        assert seen.page.evaluate("document.activeElement.id") == f"tab-{part}"
        shown = seen.page.locator("[role=tabpanel]:not([hidden])").evaluate_all(
            "all => all.map(e => e.id)"
        )
        assert shown == [part]
    seen.page.keyboard.press("End")
    assert seen.page.evaluate("document.activeElement.id") == "tab-table"
    seen.page.keyboard.press("Tab")  # Out of the list of tabs, into the part.
    assert seen.page.evaluate("document.activeElement.closest('[role=tablist]')") is None


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_part_is_accessible_and_fits(group, visit, width, scheme):
    seen = visit(group.url, width, scheme)
    whole(seen)
    for part in PARTS:
        if part == "laboratory":
            continue  # It has tests of its own.
        seen.show(part)
        if part == "history":
            entries = seen.page.locator("#history .entries button")
            entries.first.click()
            seen.until(
                lambda: "drawn" not in seen.page.locator("#history").inner_text(), "a picture"
            )
        assert not seen.too_wide(), f"{part} scrolls sideways"
        assert seen.complaints() == [], part
    ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(15, 19, 23)")


def test_what_the_checks_look_for_would_be_found(group, visit):
    seen = visit(group.url)
    seen.page.evaluate(
        """() => {
            const pale = document.createElement("p");
            pale.textContent = "pale";
            pale.style.cssText = "color:#aaa;background:#fff;width:3000px";
            document.getElementById("panels").append(pale);
            const picture = document.createElement("img");
            picture.src = "http://127.0.0.1:9/picture.png";
            document.body.append(picture);
        }"""
    )
    assert seen.too_wide()
    found = " ".join(seen.complaints())
    assert "color-contrast" in found
    assert "image-alt" in found
    seen.until(lambda: any("Content Security Policy" in line for line in seen.said), "a refusal")


def test_it_draws_less_when_the_machine_is_busy(group, visit):
    """The rule itself, with a clock of the test's own: frames come late, or drawing is dear."""
    seen = visit(group.url)
    story = """async ({gap, cost, frames}) => {
        const { Pace } = await import("/static/pace.js");
        const pace = new Pace();
        let now = 0, drawn = 0;
        const levels = new Set([pace.level]);
        for (let i = 0; i < frames; i++) {
            now += gap;
            if (pace.frame(now)) { drawn += 1; pace.cost(cost); }
            levels.add(pace.level);
        }
        return {levels: [...levels], drawn, sentence: pace.sentence};
    }"""

    def play(gap: float, cost: float, frames: int = 600) -> Any:
        return seen.page.evaluate(story, {"gap": gap, "cost": cost, "frames": frames})

    calm = play(16.7, 1)
    assert calm == {"levels": [0], "drawn": 600, "sentence": ""}
    late = play(40, 1)
    assert late["levels"] == [0, 1, 2]
    assert late["drawn"] < 300
    assert "busy" in late["sentence"]
    dear = play(16.7, 12)
    assert 1 in dear["levels"]
    assert dear["drawn"] < 400


def test_it_draws_smoothly_or_says_that_it_does_not(group, visit):
    seen = visit(group.url)
    whole(seen)
    seen.show("play")
    seen.page.locator("#play label", has_text="as fast as they can").click()
    seen.show("now")
    seen.until(
        lambda: seen.page.evaluate(
            """() => new Promise((done) => {
                let frames = 0;
                const start = performance.now();
                const count = (now) => {
                    frames += 1;
                    if (now - start < 1000) requestAnimationFrame(count);
                    else {
                        const told = document.querySelector("#now .ring-box .small").textContent;
                        done(frames >= 55 || told.includes("busy"));
                    }
                };
                requestAnimationFrame(count);
            })"""
        ),
        "60 frames in a second, or fewer on purpose",
    )
    seen.show("play")
    seen.page.locator("#play label", has_text="a little").click()
    seen.until(lambda: "the nodes send a little" in seen.page.inner_text("#play"), "less load")


def test_motion_is_left_out_for_those_who_want_none(group, visit):
    seen = visit(group.url)
    seen.page.emulate_media(reduced_motion="reduce")
    whole(seen)
    seen.until(
        lambda: "Motion is off" in seen.page.locator("#now .ring-box .small").text_content(),
        "the sentence",
    )
