"""Positions: who stands where, what is joined to what, and that words keep apart."""

from collections.abc import Callable
from itertools import combinations, pairwise

import pytest

from roundelay.core.effects import Kind
from roundelay.draw import Window, layout
from roundelay.draw.flights import ArrowKind
from roundelay.draw.scene import Box, Scene
from roundelay.trace.schema import LOWER_LAYER, WORLD

from . import stories

STORIES: dict[str, Callable[[], stories.Told]] = {
    "totem": lambda: stories.written(stories.TOTEM),
    "disagreement": lambda: stories.written(stories.DISAGREEMENT),
    "partition": stories.partition,
    "lossy": stories.lossy,
    "lossy and long": lambda: stories.lossy(events=390, nodes=8, seed=5),
    "two nodes": lambda: stories.lossy(events=120, nodes=2, seed=3),
}


def drawn(scene: Scene) -> set[int]:
    """The events that something in the picture stands for."""
    found = {mark.row for mark in scene.marks} | {i for rule in scene.rules for i in rule.rows}
    return found | {a.target for a in scene.arrows if a.target is not None}


@pytest.mark.parametrize("story", STORIES)
def test_every_event_is_represented(story: str) -> None:
    manifest, rows = STORIES[story]()
    assert drawn(layout(rows, manifest)) == set(range(len(rows)))


@pytest.mark.parametrize("story", STORIES)
def test_no_two_words_overlap_and_none_lies_on_a_mark(story: str) -> None:
    manifest, rows = STORIES[story]()
    scene = layout(rows, manifest)
    boxes = [label.box for label in scene.labels] + [rule.box for rule in scene.rules]
    assert len(scene.labels) > 10
    assert not [(a, b) for a, b in combinations(boxes, 2) if a.overlaps(b)]
    marks = [Box(m.x - 6, m.y - 6, m.x + 6, m.y + 6) for m in scene.marks]
    assert not [(a, b) for a in boxes[: len(scene.labels)] for b in marks if a.overlaps(b)]


@pytest.mark.parametrize("story", STORIES)
def test_everything_is_inside_the_picture(story: str) -> None:
    manifest, rows = STORIES[story]()
    scene = layout(rows, manifest)
    for box in [label.box for label in scene.labels] + [rule.box for rule in scene.rules]:
        assert box.x0 >= 0
        assert box.x1 <= scene.width
    for y in [mark.y for mark in scene.marks] + [label.box.y1 for label in scene.labels]:
        assert 0 <= y + scene.body_top <= scene.height


def test_most_deliveries_of_a_dense_run_keep_their_words() -> None:
    manifest, rows = stories.lossy()
    scene = layout(rows, manifest)
    labelled = {label.row for label in scene.labels}
    delivered = {i for i, row in enumerate(rows) if row.kind == Kind.DELIVER}
    assert len(delivered) > 20
    assert delivered <= labelled


@pytest.mark.parametrize("story", STORIES)
def test_later_events_are_never_higher(story: str) -> None:
    manifest, rows = STORIES[story]()
    scene = layout(rows, manifest)
    height = {mark.row: mark.y for mark in scene.marks}
    placed = sorted(height)
    for i, j in pairwise(placed):
        if rows[i].t_ns < rows[j].t_ns:
            assert height[i] <= height[j]


@pytest.mark.parametrize("story", STORIES)
def test_marks_of_one_node_never_cover_each_other(story: str) -> None:
    """But a frame leaves where its message was originated, or its token released."""
    manifest, rows = STORIES[story]()
    scene = layout(rows, manifest)
    bodies = [(m.x, m.y) for m in scene.marks if rows[m.row].kind != Kind.SEND]
    assert len(bodies) == len(set(bodies))


def test_frames_fly_from_send_to_arrive() -> None:
    manifest, rows = stories.partition()
    scene = layout(rows, manifest)
    for arrow in scene.arrows:
        assert arrow.y1 > arrow.y0
        if arrow.kind is ArrowKind.ARRIVED:
            assert arrow.source is not None
            assert arrow.target is not None
            assert rows[arrow.source].kind == Kind.SEND
            assert rows[arrow.target].kind == Kind.ARRIVE
            assert rows[arrow.source].pkt == rows[arrow.target].pkt
    arrived = [arrow for arrow in scene.arrows if arrow.kind is ArrowKind.ARRIVED]
    assert len(arrived) == sum(row.kind == Kind.ARRIVE for row in rows)


def test_lost_frames_end_short_of_the_node_they_were_meant_for() -> None:
    manifest, rows = stories.partition()
    scene = layout(rows, manifest)
    lost = [arrow for arrow in scene.arrows if arrow.kind is ArrowKind.LOST]
    assert len(lost) == sum(row.kind == Kind.DROP for row in rows) == 2
    dee = next(column.x for column in scene.columns if column.name == "dee")
    assert all(0 < dee - arrow.x1 < 40 for arrow in lost)
    assert sum(mark.shape == "lost" for mark in scene.marks) == 2


def test_the_second_copy_of_a_frame_looks_different() -> None:
    s = stories.Scribe("a", "b")
    pkt = s.send(0, "MSG")
    s.wait(10)
    s.arrive(1, pkt, "MSG", 0)
    s.wait(10)
    s.arrive(1, pkt, "MSG", 0)
    fates = [arrow.kind for arrow in layout(s.rows, s.manifest).arrows]
    assert fates == [ArrowKind.ARRIVED, ArrowKind.COPY]


def test_a_frame_that_the_node_drops_reaches_it() -> None:
    s = stories.Scribe("a", "b")
    pkt = s.send(0, "MSG")
    s.wait(10)
    s.row(Kind.DROP, 1, tag="corrupt", pkt=pkt, peer=0)
    scene = layout(s.rows, s.manifest)
    assert [arrow.kind for arrow in scene.arrows] == [ArrowKind.REFUSED]
    assert scene.arrows[0].x1 == scene.columns[1].x


def test_without_frames_messages_fly() -> None:
    manifest, rows = stories.written("p!a q?a q?a r.a end{p,q,r}")
    fates = [arrow.kind for arrow in layout(rows, manifest).arrows]
    assert fates == [ArrowKind.ARRIVED, ArrowKind.COPY, ArrowKind.IMPLIED]


def test_a_receipt_before_the_origin_flies_upwards() -> None:
    manifest, rows = stories.written("q?a p!a")
    (arrow,) = layout(rows, manifest).arrows
    assert arrow.y1 < arrow.y0


def test_packed_messages_fly_as_one() -> None:
    s = stories.Scribe("a", "b")
    s.row(Kind.ORIGINATE, 0, m_src=0, m_inc=0, m_seq=0, count=1_000_000_000)
    s.wait(10)
    s.row(Kind.RECEIVE, 1, m_src=0, m_inc=0, m_seq=5)
    (arrow,) = layout(s.rows, s.manifest).arrows
    assert (arrow.source, arrow.target) == (0, 1)


def test_an_arrow_bends_around_the_mark_of_another_node() -> None:
    manifest, rows = stories.written("p!a q?a r?a")
    far = next(a for a in layout(rows, manifest).arrows if a.target == 2)
    assert far.bend
    assert abs(far.at(0.5)[1] - (far.y0 + far.y1) / 2) > 6


def test_a_crash_breaks_the_lifeline_and_ends_the_view() -> None:
    manifest, rows = stories.partition()
    scene = layout(rows, manifest)
    cyd = scene.columns[2].x
    up, down, again = [life for life in scene.lives if life.x == cyd]
    assert (up.up, down.up, again.up) == (True, False, True)
    crash = next(mark.y for mark in scene.marks if mark.shape == "crash")
    assert up.y1 == down.y0 == crash
    recover = next(mark.y for mark in scene.marks if mark.shape == "recover")
    assert not [b for b in scene.bands if b.x == cyd and b.y0 < recover and b.y1 > crash]


def test_views_are_told_apart() -> None:
    manifest, rows = stories.partition()
    scene = layout(rows, manifest)
    ann, _, _, dee = (
        [band for band in scene.bands if band.x == column.x] for column in scene.columns
    )
    assert [band.transitional for band in ann] == [False, True, False, True, False]
    assert [band.primary for band in ann] == [True, False, True, False, True]
    assert [band.primary for band in dee] == [True, False, False, False, True]
    assert ann[0].colour == dee[0].colour
    assert ann[2].colour != dee[2].colour
    texts = [label.text for label in scene.labels if label.kind == Kind.INSTALL]
    assert "R4.ann {ann,bob,cyd,dee}!" in texts
    assert "T6.dee {dee}" in texts


def test_who_has_the_token() -> None:
    manifest, rows = stories.written("p( p!a p) q( pX q?a")
    scene = layout(rows, manifest)
    p, q = scene.holds
    assert p.x == scene.columns[0].x
    assert q.x == scene.columns[1].x
    assert p.y1 < q.y0 < q.y1


def test_faults_cross_the_whole_picture() -> None:
    manifest, rows = stories.partition()
    texts = [rule.text for rule in layout(rows, manifest).rules]
    assert "partition {ann,bob,cyd} {dee}" in texts
    assert "heal" in texts
    assert "end {ann,bob,cyd,dee}" in texts


def test_components_of_the_end_share_a_line() -> None:
    manifest, rows = stories.written("p!a end{p}{q,r}")
    (rule,) = layout(rows, manifest).rules
    assert rule.text == "end {p} {q,r}"
    assert rule.rows == (1, 2)


def test_long_pauses_are_said_and_not_drawn() -> None:
    manifest, rows = stories.partition()
    scene = layout(rows, manifest)
    assert "200 ms later" in [rule.text for rule in scene.rules]
    assert scene.height < 1200


def test_times_have_ticks_where_there_is_a_clock() -> None:
    manifest, rows = stories.partition()
    scene = layout(rows, manifest)
    assert scene.ticks[0].text == "0 ms"
    assert "1.08 ms" in [tick.text for tick in scene.ticks]
    manifest, rows = stories.written(stories.TOTEM)
    assert not layout(rows, manifest).ticks


def test_a_witness_stands_out() -> None:
    manifest, rows = stories.written(stories.DISAGREEMENT)
    witness = [row for row in rows if row.kind == Kind.DELIVER and row.proc in (0, 1)]
    scene = layout(rows, manifest, witness=witness, reason="O5 violated: they disagree.")
    assert {m.row for m in scene.marks if m.lit} == {rows.index(row) for row in witness}
    assert {label.row for label in scene.labels if label.lit} == {rows.index(r) for r in witness}
    assert "O5 violated: they disagree." in [heading.text for heading in scene.headings]
    assert "witness" in [entry.glyph for entry in scene.legend]


def test_a_witness_of_single_messages_finds_the_packed_row() -> None:
    s = stories.Scribe("a", "b")
    packed = s.row(Kind.DELIVER, 0, m_src=1, m_inc=0, m_seq=0, count=9, digest=3, size=900)
    single = packed._replace(m_seq=4, count=1, digest=None, size=None)
    s.row(Kind.DELIVER, 1, m_src=1, m_inc=0, m_seq=0, count=9)
    scene = layout(s.rows, s.manifest, witness=[single])
    assert [mark.row for mark in scene.marks if mark.lit] == [0]


def test_an_arrival_can_be_a_witness() -> None:
    manifest, rows = stories.partition()
    arrival = next(row for row in rows if row.kind == Kind.ARRIVE)
    scene = layout(rows, manifest, witness=[arrival])
    assert [mark.row for mark in scene.marks if mark.lit] == [rows.index(arrival)]


def test_the_layer_below_is_drawn_as_a_witness_only() -> None:
    """It tells of the same messages again."""
    s = stories.Scribe("a", "b")
    about = {"m_src": 0, "m_inc": 0, "m_seq": 0}
    s.row(Kind.ORIGINATE, 0, **about)
    s.row(Kind.ORIGINATE, 0, layer=LOWER_LAYER, **about)
    handed_up = s.row(Kind.DELIVER, 1, layer=LOWER_LAYER, **about)
    s.row(Kind.DELIVER, 1, **about)
    scene = layout(s.rows, s.manifest)
    assert drawn(scene) == {0, 3}
    assert [(arrow.source, arrow.target) for arrow in scene.arrows] == [(0, 3)]
    assert not any(heading.text.startswith("Shows") for heading in scene.headings)
    assert drawn(layout(s.rows, s.manifest, witness=[handed_up])) == {0, 2, 3}


def test_one_stub_stands_for_all_copies_that_leave_the_picture() -> None:
    s = stories.Scribe("a", "b", "c", "d")
    pkt = s.send(0, "MSG")
    s.wait(10)
    for proc in (1, 2, 3):
        s.arrive(proc, pkt, "MSG", 0)
    scene = layout(s.rows, s.manifest, window=Window(limit=1))
    assert [arrow.kind for arrow in scene.arrows] == [ArrowKind.OPEN]


def test_a_limit_is_said() -> None:
    manifest, rows = stories.lossy()
    scene = layout(rows, manifest, window=Window(limit=50))
    assert drawn(scene) == set(range(50))
    assert scene.note == "Shows 50 of 200 events (the first 50)."
    assert scene.note in [heading.text for heading in scene.headings]


def test_around_a_witness_the_rest_is_left_out_and_said() -> None:
    manifest, rows = stories.lossy()
    witness = [rows[60], rows[150]]
    scene = layout(rows, manifest, witness=witness, window=Window(around=5))
    assert drawn(scene) == {*range(55, 66), *range(145, 156)}
    assert "79 events left out" in [rule.text for rule in scene.rules]
    # The view was installed long before.
    assert len(scene.bands) == 7
    assert any(label.text.startswith("R4.a") for label in scene.labels)


def test_the_limit_keeps_what_is_near_the_witness() -> None:
    manifest, rows = stories.lossy()
    scene = layout(rows, manifest, witness=[rows[100]], window=Window(limit=21))
    assert drawn(scene) == set(range(90, 111))


def test_a_witness_outside_the_window_is_said() -> None:
    manifest, rows = stories.partition()
    scene = layout(rows, manifest, witness=[rows[0]], window=Window(start_ns=1))
    assert "1 of the 1 events of the witness are not among them." in scene.note


def test_times_and_nodes_narrow_the_picture() -> None:
    manifest, rows = stories.partition()
    window = Window(start_ns=1_000_000, end_ns=5_000_000, nodes=("ann", "bob"))
    scene = layout(rows, manifest, window=window)
    assert [column.name for column in scene.columns] == ["ann", "bob"]
    assert scene.note.startswith("Shows 6 of 54 events (only nodes ann, bob; from 1 ms on; up to 5")
    assert {rows[i].proc for i in drawn(scene)} == {0, 1, WORLD}


def test_hidden_frames_let_messages_fly() -> None:
    manifest, rows = stories.partition()
    scene = layout(rows, manifest, window=Window(hide=("send", "arrive", "drop")))
    assert {arrow.kind for arrow in scene.arrows} == {ArrowKind.ARRIVED}
    assert "message on its way" in [entry.text for entry in scene.legend]


def test_the_legend_shows_what_occurs_and_nothing_else() -> None:
    manifest, rows = stories.written("p!a p.a")
    assert [e.glyph for e in layout(rows, manifest).legend] == ["originate", "deliver"]
    manifest, rows = stories.partition()
    glyphs = {entry.glyph for entry in layout(rows, manifest).legend}
    assert {"lost", "crash", "down", "transitional", "primary", "fault", "pause"} <= glyphs
    assert not {"hold", "confirm", "withdraw", "copy", "witness"} & glyphs


def test_names_are_repeated_down_a_long_picture() -> None:
    manifest, rows = stories.lossy()
    assert len(layout(rows, manifest).names) >= 3
