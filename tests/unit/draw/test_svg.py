"""The document: well-formed, escaped, self-contained, and always the same."""

import hashlib
import os
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import roundelay
from roundelay import draw
from roundelay.core.effects import Kind
from roundelay.draw import Window
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import WORLD, Row

from . import stories

Story = Callable[[], stories.Told]
SVG = "{http://www.w3.org/2000/svg}"


def parsed(text: str) -> ET.Element:
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    return root


@pytest.mark.parametrize("story", [stories.partition, stories.lossy])
def test_a_picture_is_an_accessible_image(story: Story) -> None:
    manifest, rows = story()
    root = parsed(draw.svg(rows, manifest, title="A run"))
    assert root.get("role") == "img"
    assert [child.tag for child in root[:2]] == [f"{SVG}title", f"{SVG}desc"]
    assert root[0].text == "A run"
    assert f"{len(rows)} events" in (root[1].text or "")


def test_every_event_has_its_facts_in_a_tooltip() -> None:
    manifest, rows = stories.partition()
    root = parsed(draw.svg(rows, manifest))
    tips = "\n\n".join(title.text or "" for title in root.iter(f"{SVG}title"))
    for row in rows:
        assert f"event {row.gseq} of the run" in tips
    assert "ann originates ann:0" in tips
    assert "cyd installs primary regular view R8.ann {ann,bob,cyd}" in tips
    assert "service safe" in tips


def test_a_primary_view_its_freeze_and_lost_standing_are_told() -> None:
    manifest, rows = mini.parse("p+V2{p}!{p,q} p!a p/V6 pX p^-")
    text = draw.svg(rows, manifest)
    assert "primary regular view R2 {p}, voters {p,q}" in text
    assert "p freezes its view for the ring R6" in text
    assert "freezes for R6" in text
    assert "p recovers without its standing" in text
    assert "old view frozen" in text  # The legend.


def test_a_gather_is_drawn_with_its_reason() -> None:
    manifest, rows = mini.parse("p+V2{p} p!a")
    gather = rows[-1]._replace(
        kind="gather", tag="join_heard", lseq=2, gseq=2, m_src=None, m_inc=None, m_seq=None
    )
    text = draw.svg([*rows, gather], manifest)
    assert "p begins to gather: join heard" in text
    assert ">gathers: join heard<" in text
    assert "begins to agree on a view" in text  # The legend.


def test_nothing_is_fetched_and_nothing_runs() -> None:
    manifest, rows = stories.lossy()
    text = draw.svg(rows, manifest)
    assert "<script" not in text
    assert "href" not in text
    assert "@import" not in text
    assert re.findall(r"url\((.*?)\)", text) == []
    assert text.count("http") == 1  # The name space.


def test_patterns_of_transitional_views_are_inside() -> None:
    manifest, rows = stories.partition()
    text = draw.svg(rows, manifest)
    used = set(re.findall(r"url\(#(.*?)\)", text))
    assert used
    assert used == set(re.findall(r'<pattern id="(.*?)"', text))


def test_light_and_dark_have_their_colours() -> None:
    manifest, rows = stories.partition()
    text = draw.svg(rows, manifest)
    assert "prefers-color-scheme:dark" in text
    assert "var(" not in text
    assert '<rect class="ground" width="100%" height="100%"/>' in text


def test_the_style_concerns_the_picture_alone() -> None:
    manifest, rows = stories.written("p!a")
    style = parsed(draw.svg(rows, manifest)).find(f"{SVG}style")
    assert style is not None
    for line in (style.text or "").strip().splitlines():
        assert line.startswith((".roundelay ", "@media", "}"))


def test_all_text_is_escaped() -> None:
    evil = "<script>&\"'\x00\ud800]]>"
    manifest = Manifest(run=evil, nodes=(evil, "b"), protocol=evil)
    rows = [
        Row(Kind.EXPIRE, 0, 0, 0, gseq=0, tag=evil),
        Row(evil, 0, 0, 1, gseq=1, tag=evil),
        Row(Kind.FAULT, WORLD, 0, 0, gseq=2, tag=evil, x=evil),
        Row(Kind.SEND, 1, 0, 0, gseq=3, tag=evil, pkt=1, x=evil),
        Row(Kind.DELIVER, 1, 0, 1, gseq=4, m_src=0, m_inc=0, m_seq=1),
    ]
    text = draw.svg(rows, manifest, title=evil, reason=evil, witness=rows[:1])
    root = parsed(text)
    assert "<script" not in text
    assert not list(root.iter(f"{SVG}script"))
    assert any("<script>&" in (element.text or "") for element in root.iter(f"{SVG}title"))


PROGRAM = """
import hashlib
from roundelay import draw
from tests.unit.draw import stories
for story in (stories.partition, stories.lossy):
    manifest, rows = story()
    print(hashlib.sha256(draw.svg(rows, manifest, witness=rows[30:33]).encode()).hexdigest())
"""


def test_the_same_rows_give_the_same_bytes() -> None:
    root = Path(__file__).parents[3]
    path = os.pathsep.join([str(root), str(Path(roundelay.__file__).parents[1])])
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    manifest, rows = stories.partition()
    here = draw.svg(rows, manifest, witness=rows[30:33])
    assert len(found) == 1
    assert hashlib.sha256(here.encode()).hexdigest() in found.pop()


def test_the_order_of_the_rows_does_not_matter() -> None:
    manifest, rows = stories.lossy()
    shuffled = random.Random(4).sample(rows, len(rows))
    assert draw.svg(shuffled, manifest) == draw.svg(rows, manifest)


ODD: dict[str, list[Row]] = {
    "nothing": [],
    "one event": [Row(Kind.SUBMIT, 0, 0, 0)],
    "the world alone": [Row(Kind.FAULT, WORLD, 0, 0), Row(Kind.END, WORLD, 0, 1)],
    "no such node": [Row(Kind.DELIVER, 99, 0, 0, m_src=77, m_inc=0, m_seq=1)],
    "arrival from nowhere": [Row(Kind.ARRIVE, 0, 0, 0, pkt=5)],
    "send to nobody": [Row(Kind.SEND, 0, 0, 0, pkt=5, peer=42)],
    "send to itself": [Row(Kind.SEND, 0, 0, 0, pkt=5), Row(Kind.ARRIVE, 0, 0, 1, pkt=5, peer=0)],
    "lost without a trace": [Row(Kind.DROP, WORLD, 0, 0), Row(Kind.SEND, 0, 0, 0)],
    "lost by a node": [Row(Kind.DROP, 0, 0, 0, pkt=1), Row(Kind.DROP, 1, 0, 0)],
    "unknown kind": [Row("dance", 0, 0, 0, tag="tango"), Row("dance", WORLD, 0, 0)],
    "no names": [Row(Kind.RECEIVE, 0, 0, 0, m_src=None, m_seq=None)],
    "half a message": [Row(Kind.DELIVER, 0, 0, 0, m_src=0, m_inc=None, m_seq=3, svc=9, k2=1)],
    "a view of nobody": [Row(Kind.INSTALL, 0, 0, 0), Row(Kind.INSTALL, 0, 0, 1, c_seq=3)],
    "recovery without a crash": [Row(Kind.RECOVER, 0, 0, 0), Row(Kind.CRASH, 0, 0, 1)],
    "release without acquire": [Row(Kind.TOKEN, 0, 0, 0, tag="release"), Row(Kind.TOKEN, 0, 0, 1)],
    "a fault of broken words": [Row(Kind.FAULT, WORLD, 0, 0, tag="cut", x='{"a": [[')],
    "twice the same row": [Row(Kind.SUBMIT, 0, 0, 0, gseq=1)] * 3,
    "times before time": [Row(Kind.SUBMIT, 0, 0, 0, t_ns=-5), Row(Kind.SUBMIT, 1, 0, 0, t_ns=-9)],
    "long words": [Row(Kind.EXPIRE, 0, 0, 0, tag="x" * 5000, x="y" * 5000)],
}


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b"), ("n" * 400, "", " ")])
@pytest.mark.parametrize("odd", ODD)
def test_odd_traces_are_drawn(odd: str, names: tuple[str, ...]) -> None:
    manifest = Manifest(run="odd", nodes=names)
    scene = draw.layout(ODD[odd], manifest)
    parsed(draw.render(scene))
    shown = {mark.row for mark in scene.marks} | {i for rule in scene.rules for i in rule.rows}
    shown |= {a.target for a in scene.arrows if a.target is not None}
    assert shown == set(range(len(ODD[odd])))


small = st.integers(-2, 4)
maybe = st.none() | small
rows_of_any_kind = st.builds(
    Row,
    kind=st.sampled_from([*[kind.value for kind in Kind], "dance"]),
    proc=small,
    inc=st.integers(0, 2),
    lseq=st.integers(0, 20),
    gseq=maybe,
    t_ns=st.sampled_from([0, 1, 1000, 5_000, 10**6, 10**12]),
    tag=st.sampled_from(["", "acquire", "release", "loss", "MSG"]),
    m_src=maybe,
    m_inc=maybe,
    m_seq=maybe,
    svc=maybe,
    dst=st.none() | st.tuples(small, small),
    k2=maybe,
    k3=maybe,
    level=maybe,
    c_seq=maybe,
    c_rep=maybe,
    c_kind=maybe,
    members=st.none() | st.tuples(small, small),
    primary=st.none() | st.booleans(),
    count=st.sampled_from([0, 1, 3]),
    pkt=maybe,
    peer=maybe,
    x=st.sampled_from([None, "", "{", '{"a": null}', "[[1], [2, 3]]"]),
)
windows = st.builds(
    Window,
    start_ns=st.none() | st.just(1000),
    end_ns=st.none() | st.just(10**6),
    nodes=st.none() | st.just(("a", "c")) | st.just(()),
    around=st.none() | st.integers(0, 3),
    limit=st.none() | st.integers(0, 8),
    hide=st.just(()) | st.just(("send", "arrive")),
)


@settings(max_examples=120, deadline=None)
@given(rows=st.lists(rows_of_any_kind, max_size=25), window=windows, told=st.integers(0, 3))
def test_any_rows_give_a_picture_whose_words_keep_apart(
    rows: list[Row], window: Window, told: int
) -> None:
    manifest = Manifest(run="any", nodes=("a", "b", "c"))
    scene = draw.layout(rows, manifest, witness=rows[:told], window=window)
    parsed(draw.render(scene))
    boxes = [label.box for label in scene.labels]
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])


OF_LOG = (
    "p+V1{p,q}!{p,q}* q+V1{p,q}!{p,q}* p>0 p&V1=0{p,q} p+a p=a@0 q=a@0..3 p>1 p|1 q<1 q:1 "
    "p@1%x q@!1%x q[m.get q]m@1 pX!"
)


def test_rows_of_the_log_have_marks_words_facts_and_a_legend() -> None:
    manifest, rows = mini.parse(OF_LOG)
    scene = draw.layout(rows, manifest)
    glyphs = {entry.glyph: entry.text for entry in scene.legend}
    assert set(glyphs) >= {
        *("append", "entry", "stored", "commit", "truncate", "opening", "caught"),
        *("snapshot", "restore", "invoke", "reply"),
    }
    assert "other" not in glyphs
    assert glyphs["entry"] == "entry of the log, with its index"
    words = {label.text for label in scene.labels}
    assert {"a", "a @0", "p:0..3 @0..3", "commit 1", "cut to 1", "caught 1", "m.get"} <= words
    assert {"open @0, voters {p,q}", "reply @1", "crash, power"} <= words
    root = parsed(draw.svg(rows, manifest))
    tips = "\n\n".join(title.text or "" for title in root.iter(f"{SVG}title"))
    for fact in (
        "p finds open R1 from index 0 on, voters {p,q}",
        "p gives an index to a, 0, of term R1",
        "p knows to be committed 1 entry",
        "q cuts its log to 1 entry",
        "q has the reply of the operation on m, as of length 1",
        "p crashes (power)",
    ):
        assert fact in tips


def test_a_picture_without_a_log_has_no_rules_for_it() -> None:
    manifest, rows = mini.parse("p!a p.a")
    assert ".m.truncate" not in draw.svg(rows, manifest)
    manifest, rows = mini.parse(OF_LOG)
    assert ".roundelay .m.truncate" in draw.svg(rows, manifest)
