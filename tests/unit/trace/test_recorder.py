"""The recorder: effects to rows, whatever names and numbers they carry."""

from collections.abc import Callable

import pytest

from roundelay.core.effects import Deliver, Kind, Record
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.core.log import NAMED, Head
from roundelay.links.engine import LINK_LAYER
from roundelay.trace.compact_recorder import CompactRecorder
from roundelay.trace.intake import fault
from roundelay.trace.recorder import Recorder
from roundelay.trace.schema import LOG_LAYER, LOWER_LAYER, WORLD, Row

NUMBERS = {"a": 0, "b": 1, "c": 2}
OLD, RING = ViewId(4, "a"), ViewId(8, "b")


class Stopped:
    """A clock that does not move."""

    now = 5


def recorder(rows: list[Row], incarnation: int = 0, *, net: bool = True) -> Recorder:
    return Recorder(rows.append, NUMBERS, "a", incarnation, Stopped(), net=net)


def packet(node: str = "b", incarnation: int = 0, to: tuple[str, ...] | None = None) -> Packet:
    return Packet(Span(node, incarnation, 3), Service.AGREED, b"x", to)


def test_an_install_says_who_votes_and_whether_this_node_may() -> None:
    rows: list[Row] = []
    record = recorder(rows)
    record.install(View(OLD, ("a", "b"), primary=True, voters=("a", "b", "c")), able=True)
    record.install(View(RING, ("a", "b"), voters=("a", "b", "c")))
    assert [(row.voters, row.level, row.primary) for row in rows] == [
        ((0, 1, 2), 1, True),
        (None, 0, False),
    ]


def test_a_freeze_names_the_ring_and_the_view_that_ends() -> None:
    rows: list[Row] = []
    record = recorder(rows)
    record.install(View(OLD, ("a", "b")))
    record.record(Record(Kind.FREEZE, view=RING))
    row = rows[-1]
    assert (row.kind, row.k0, row.k1, row.k2, row.k3) == ("freeze", 8, 1, None, None)
    assert (row.c_seq, row.c_rep, row.members, row.voters) == (4, 0, None, None)


def test_a_gather_says_why_it_begins_and_in_which_view() -> None:
    rows: list[Row] = []
    record = recorder(rows)
    record.install(View(OLD, ("a", "b")))
    record.record(Record(Kind.GATHER, tag="join_heard"))
    row = rows[-1]
    assert (row.kind, row.tag, row.c_seq, row.c_rep) == ("gather", "join_heard", 4, 0)
    assert (row.k0, row.m_seq, row.members) == (None, None, None)


@pytest.mark.parametrize("level", [0, 1])
def test_a_recovery_says_whether_standing_was_kept(level: int) -> None:
    rows: list[Row] = []
    recorder(rows, 7).record(Record(Kind.RECOVER, stable_seq=12, level=level))
    assert (rows[0].inc, rows[0].k0, rows[0].level) == (7, 12, level)


GHOSTS: list[Callable[[Recorder], None]] = [
    lambda r: r.deliver(Deliver(packet("ghost"), ViewId(1, "ghost"), (1, 0))),
    lambda r: r.deliver(Deliver(packet(to=("b", "zz")), OLD)),
    lambda r: r.record(Record(Kind.RECEIVE, packet("ghost"), OLD)),
    lambda r: r.record(Record(Kind.STABLE, Span("ghost", 0, 0), OLD, level=1)),
    lambda r: r.record(Record(Kind.ORDER, packet("ghost"), ViewId(1, "ghost"), (1, 0), 1)),
    lambda r: r.record(Record(Kind.ORDER, None, ViewId(1, "ghost"), (1, 0), 1)),
    lambda r: r.record(Record(Kind.TOKEN, view=ViewId(1, "ghost"), tag="acquire")),
    lambda r: r.record(Record(Kind.FREEZE, view=ViewId(1, "ghost"))),
    lambda r: r.record(Record(Kind.SUBMIT, packet("ghost", to=("zz",)))),
    lambda r: r.install(View(ViewId(1, "ghost"), ("a", "ghost"), primary=True, voters=("zz",))),
    lambda r: r.suspect(("b", "ghost"), "silent"),
    lambda r: r.arrive("ghost", 1 << 70, 1 << 70, "token", 9),
    lambda r: r.send("zz", 1, "token", 9),
    lambda r: r.drop("stranger", peer="ghost"),
    lambda r: r.end(("a", "ghost")),
]


@pytest.mark.parametrize("tell", GHOSTS)
def test_a_name_that_nobody_has_makes_a_row_that_can_be_read(tell: Callable[[Recorder], None]):
    rows: list[Row] = []
    record = recorder(rows)
    tell(record)
    record.crash()
    assert [row.lseq for row in rows] == [0, 1]
    assert [fault(row, len(NUMBERS)) for row in rows] == [None, None]
    for group in (rows[0].members, rows[0].dst, rows[0].voters):
        assert set(group or ()) <= {0, 1}
    assert rows[0].m_src in (None, 1, WORLD) or rows[0].kind == Kind.SUBMIT


def test_what_a_stranger_sent_is_nobodys() -> None:
    rows: list[Row] = []
    recorder(rows).deliver(Deliver(packet("ghost", to=("zz", "c")), OLD, (1, 0)))
    assert (rows[0].m_src, rows[0].dst, rows[0].k1) == (WORLD, (2,), 0)


@pytest.mark.parametrize("incarnation", [1 << 63, 1 << 80, -1])
def test_an_incarnation_that_no_column_holds_costs_its_row_and_nothing_else(incarnation: int):
    rows: list[Row] = []
    record = recorder(rows)
    record.deliver(Deliver(packet(incarnation=incarnation), OLD))
    record.record(Record(Kind.RECEIVE, packet(incarnation=incarnation), OLD))
    record.deliver(Deliver(packet(incarnation=(1 << 63) - 1), OLD))
    assert record.unwritten == 2
    assert [(row.lseq, row.m_inc) for row in rows] == [(0, (1 << 63) - 1)]


def test_a_nodes_own_incarnation_always_fits() -> None:
    rows: list[Row] = []
    recorder(rows, (1 << 64) + 5).crash()
    assert fault(rows[0], 3) is None
    assert rows[0].inc == 5


@pytest.mark.parametrize("net", [True, False])
def test_the_layer_below_has_rows_where_frames_have(net: bool) -> None:
    """Without a key, since the link below an engine knows of none."""
    rows: list[Row] = []
    record = recorder(rows, net=net)
    for kind in (Kind.ORIGINATE, Kind.DELIVER):
        record.record(Record(kind, packet(), OLD, layer=LINK_LAYER))
    record.deliver(Deliver(packet(), OLD, (7, 0)))
    told = [(row.kind, row.layer, row.k2) for row in rows]
    below = [("originate", LOWER_LAYER, None), ("deliver", LOWER_LAYER, None)]
    assert told == [*(below if net else []), ("deliver", "app", 7)]
    assert [row.lseq for row in rows] == list(range(len(rows)))


def test_packets_of_a_burst_name_no_frame() -> None:
    """Any of its frames may have brought them; a packet of a single frame names that frame."""
    rows: list[Row] = []
    record = recorder(rows)
    record.arrive("b", 0, 7, "DATA", 10)
    record.record(Record(Kind.RECEIVE, packet(), OLD))
    record.arrive("b", 0, 8, "DATA", 10)
    record.arrive("b", 0, 9, "DATA", 10)
    record.forget_frame()
    record.record(Record(Kind.RECEIVE, packet(), OLD))
    single, burst = [row for row in rows if row.kind == "receive"]
    assert (single.pkt, single.peer) == (rows[0].pkt, 1)
    assert (burst.pkt, burst.peer) == (None, None)


def head(
    sender: str = "b", *, count: int = 3, incarnation: int = 2, session: int = NAMED | 5
) -> Head:
    return Head(7, RING, sender, incarnation, session, 40, count, 1_000, 0xFFFF_FFFF)


def test_an_entry_has_its_index_term_session_and_digest() -> None:
    rows: list[Row] = []
    record = recorder(rows)
    record.install(View(RING, ("a", "b")))
    record.record(Record(Kind.ENTRY, index=7, head=head()))
    row = rows[-1]
    assert (row.kind, row.layer, row.idx, row.count) == ("entry", LOG_LAYER, 7, 3)
    assert (row.m_src, row.m_inc, row.m_seq, row.obj) == (1, 2, 40, "8000000000000005")
    assert (row.k0, row.k1, row.k2, row.digest) == (8, 1, None, 0xFFFF_FFFF)
    assert (row.c_seq, row.c_rep) == (8, 1)
    assert fault(row, len(NUMBERS)) is None


def test_what_is_appended_has_no_index_and_no_term() -> None:
    rows: list[Row] = []
    recorder(rows).record(Record(Kind.APPEND, head=head("a")))
    row = rows[-1]
    assert (row.kind, row.m_src, row.m_seq, row.count, row.idx) == ("append", 0, 40, 3, None)
    assert (row.k0, row.k1, row.digest) == (None, None, None)
    assert fault(row, len(NUMBERS)) is None


def test_what_opens_a_session_is_no_entry() -> None:
    rows: list[Row] = []
    recorder(rows).record(Record(Kind.ENTRY, index=7, head=head(count=0)))
    assert rows == []


def test_entries_of_impossible_senders_are_counted_or_nobodys() -> None:
    rows: list[Row] = []
    record = recorder(rows)
    record.record(Record(Kind.ENTRY, index=7, head=head(incarnation=1 << 63)))
    assert (rows, record.unwritten) == ([], 1)
    record.record(Record(Kind.ENTRY, index=7, head=head("ghost")))
    assert rows[0].m_src == WORLD


@pytest.mark.parametrize(
    "kind", [Kind.STORED, Kind.COMMIT, Kind.CUT, Kind.CAUGHT, Kind.SNAPSHOT, Kind.RESTORE]
)
def test_a_length_of_the_log(kind: Kind) -> None:
    rows: list[Row] = []
    recorder(rows).record(Record(kind, index=12))
    assert (rows[0].kind, rows[0].layer, rows[0].idx) == (kind, LOG_LAYER, 12)
    assert fault(rows[0], len(NUMBERS)) is None


def test_an_opening_names_the_view_its_base_and_its_voters() -> None:
    rows: list[Row] = []
    record = recorder(rows)
    record.install(View(OLD, ("a", "b")))
    record.record(Record(Kind.OPEN, view=RING, index=4, members=("a", "c", "ghost")))
    row = rows[-1]
    assert (row.k0, row.k1, row.idx, row.members) == (8, 1, 4, (0, 2))
    assert (row.c_seq, row.c_rep, row.voters) == (4, 0, None)
    record.record(Record(Kind.STORED, index=4))
    assert rows[-1].members is None
    assert fault(row, len(NUMBERS)) is None


def test_a_crash_says_what_became_of_the_disk() -> None:
    rows: list[Row] = []
    recorder(rows).crash("power")
    assert (rows[0].kind, rows[0].tag) == ("crash", "power")


def test_a_reply_names_its_operation() -> None:
    rows: list[Row] = []
    record = recorder(rows)
    call = record.invoke("m", "get", 1 << 63, stale=True)
    other = record.invoke("m", "put")
    record.reply(call, "m", "get", -1, 4)
    assert [(r.kind, r.obj, r.op, r.lseq, r.level, r.idx) for r in rows] == [
        ("invoke", "m", "get", call, 0, None),
        ("invoke", "m", "put", other, None, None),
        ("reply", "m", "get", 2, None, 4),
    ]
    assert rows[2].cause == call
    assert (rows[0].arg, rows[2].res) == (0, (1 << 63) - 1)
    assert all(fault(row, len(NUMBERS)) is None for row in rows)


def test_a_snapshot_and_who_restores_it_have_the_digest_of_the_state() -> None:
    rows: list[Row] = []
    record = recorder(rows)
    record.snapshot(9, 5)
    record.snapshot(9, 5, restored=True)
    assert [(r.kind, r.idx, r.digest) for r in rows] == [("snapshot", 9, 5), ("restore", 9, 5)]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (Row("entry", 0, 0, 0, m_src=0, m_inc=0, m_seq=0, obj="0"), "the entry has no idx"),
        (Row("entry", 0, 0, 0, idx=0, obj="0"), "the entry names no message"),
        (Row("entry", 0, 0, 0, m_src=0, m_inc=0, m_seq=0, idx=0), "the entry has no obj"),
        (Row("commit", 0, 0, 0, idx=-1), "idx -1 is negative"),
        (Row("open", 0, 0, 0, idx=0), "the open has no members"),
        (Row("reply", 0, 0, 0), "the reply has no obj"),
    ],
)
def test_rows_of_the_log_that_make_no_sense_are_refused(row: Row, why: str) -> None:
    assert fault(row, len(NUMBERS)) == why


class Read(Stopped):
    """The same for whoever reads it often."""

    @staticmethod
    def read() -> int:
        return Stopped.now


def test_rows_in_compact_form_can_be_watched_for_a_while() -> None:
    record = CompactRecorder(lambda: None, 100, NUMBERS, "a", 0, Read(), net=False)
    seen: list[Row] = []
    for append in (None, seen.append, None):
        record.tee(append)
        for number in range(3):
            record.deliver(Deliver(packet(), OLD, (number, 0)))
    rows = record.take().rows()
    assert [row.lseq for row in rows] == list(range(9))
    assert seen == rows[3:6]
