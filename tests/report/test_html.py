"""Elements as text: whatever comes from outside stays text."""

import json
import re

from roundelay.report import html


def test_nothing_from_outside_becomes_an_element():
    nasty = '<img src=x onerror="alert(1)">&'
    for made in (
        html.paragraph(nasty),
        html.heading(2, nasty),
        html.folded(nasty),
        html.scrolled(nasty),
        html.table(nasty, (nasty,), [(nasty,)]),
        html.element("p", aria_label=nasty),
    ):
        assert "<img" not in made
        assert 'onerror="' not in made


def test_data_cannot_end_its_script():
    value = {"name": "</script><script>alert(1)</script>", "line": "a\u2028b"}
    encoded = html.data(value)
    assert "<" not in encoded
    assert "\u2028" not in encoded
    assert json.loads(encoded) == value


def test_numbers_are_shown_with_the_digits_that_mean_something():
    values = [0.12345, 12.345, 1234.5, 7, None, float("nan"), (1.0, 2.5), "word"]
    shown = [html.show(value) for value in values]
    assert shown == ["0.123", "12.3", "1234", "7", "-", "-", "1 2.5", "word"]


def test_a_page_without_plots_carries_no_library():
    parts = {"a|A": html.section("A", "a"), "b|B": html.section("B", "b")}
    page = html.page("t", "", parts, [])
    assert len(page) < 100_000
    assert re.search(r'<a href="#a">A</a>', page)
    assert '<h2 id="a">A</h2>' in page


def test_a_page_of_one_part_has_no_list_of_parts():
    assert "<nav" not in html.page("t", "", {"a|A": html.section("A", "a")}, [])


def test_numbers_stand_under_their_headers():
    made = html.table("t", ("what", "count"), [("a", 1), ("b", None), ("c", 2.5)])
    assert '<th scope="col">what</th><th scope="col" class="number">count</th>' in made
    assert made.count('<td class="number">') == 3
    mixed = html.table("t", ("count",), [(1,), ("many",)])
    assert "number" not in mixed
