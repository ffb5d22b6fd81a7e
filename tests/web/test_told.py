"""What the page is told of groups, from what their nodes answered."""

import time
from pathlib import Path
from typing import Any

import pytest

from roundelay.runtime.meter import Histogram
from roundelay.web import chronicle as chronicles
from roundelay.web import figures, now
from roundelay.web.chronicle import BURST_PACKETS, Chronicle
from roundelay.web.hindrances import hindrance
from roundelay.web.watching import Watched, Watching

COUNTERS = (
    *("packets_received", "packets_delivered", "packets_own", "messages_delivered"),
    *("bytes_delivered", "frames_sent", "views", "suspicions", "pauses"),
)
PEERS = dict.fromkeys("abcde", "127.0.0.1:1")


def histogram(*durations_ms: float) -> dict[str, Any]:
    found = Histogram()
    for ms in durations_ms:
        found.add(ms / 1e3)
    return found.as_dict()


def status(node: str = "a", **more: Any) -> dict[str, Any]:
    members = list(more.pop("members", "abcde"))
    counters = dict.fromkeys(COUNTERS, 0)
    view = {"id": f"7.{members[0]}", "members": members, "primary": len(members) > 2}
    return {
        "group": "g",
        "node": node,
        "incarnation": 1,
        "engine": "totem",
        "timeout_s": 0.4,
        "phase": "operational",
        "gather": "",
        "uptime_s": 3.0,
        "view": {**view, "why": "", "voters": members},
        "queues": {"packets_to_send": 0, "packets_to_read": 0},
        "counters": {**counters, **more.pop("counters", {})},
        "drops": {},
        "latency": histogram(),
        "rotation": histogram(),
        "token_ns": None,
        "seal": None,
        "log": None,
        "check": None,
        "warnings": [],
        "peers": PEERS,
        **more,
    }


def told(node: str, state: Any = "up", *kept: dict[str, Any], **more: Any) -> Watched:
    found = Watched(Path(node), "g", node, state=state, status=status(node, **more))
    for second, one in enumerate(kept or (found.status, found.status)):
        assert one is not None
        found.kept.append((float(second), one))
    return found


def test_rates_are_of_the_last_moments_and_durations_of_what_is_new():
    early = status(counters={"messages_delivered": 10}, latency=histogram(1, 1, 1000))
    later = status(
        counters={"messages_delivered": 250, "packets_received": 30, "packets_delivered": 20},
        latency=histogram(1, 1, 1000, *[3] * 98, 40, 40),
    )
    found = [(0.0, early), (2.0, later)]
    rates = figures.rates(found)
    assert rates["messages_per_s"] == 120
    assert rates["repeats_per_s"] == 5
    assert figures.rates(found[:1]) == {}
    latency = figures.durations(found, "latency")
    assert (latency["p50_ms"], latency["p99_ms"]) == (5, 50)
    assert latency["mean_ms"] == pytest.approx((98 * 3 + 80) / 100, abs=0.1)
    assert figures.durations([(0.0, later), (1.0, later)], "latency")["p50_ms"] is None
    assert figures.durations([], "latency")["mean_ms"] is None


def test_drops_are_told_by_reason_with_those_of_late():
    found = [(0.0, status(drops={"checksum": 4})), (1.0, status(drops={"checksum": 9, "x": 0}))]
    assert figures.lately([], "views") == 0
    assert figures.dropped(found) == {"checksum": {"count": 9, "lately": 5}}


def test_a_partition_is_two_rings_and_the_primary_one_is_first():
    minority = [told(node, members="ab") for node in "ab"]
    majority = [told(node, members="cde") for node in "cde"]
    group = now.group("g", minority + majority)
    assert [ring["members"] for ring in group["rings"]] == [["c", "d", "e"], ["a", "b"]]
    assert [ring["primary"] for ring in group["rings"]] == [True, False]


def test_what_a_node_that_is_gone_said_last_makes_no_ring():
    group = now.group(
        "g", [told("a", "gone", members="ab"), *(told(n, members="cde") for n in "cde")]
    )
    assert [ring["members"] for ring in group["rings"]] == [["c", "d", "e"]]
    states = {node["name"]: node["state"] for node in group["nodes"]}
    assert states == {"a": "gone", "b": "elsewhere", "c": "up", "d": "up", "e": "up"}


def test_the_token_is_where_it_came_last_and_rests_if_nothing_is_delivered():
    nodes = [told(node, token_ns=number) for number, node in enumerate("abcde")]
    token = now.group("g", nodes)["token"]
    assert [(one["node"], one["rests"]) for one in token] == [("e", True)]
    busy = told("a", "up", status(), status(counters={"messages_delivered": 9}), token_ns=9)
    token = now.group("g", [busy, *nodes[1:]])["token"]
    assert [(one["node"], one["rests"]) for one in token] == [("a", False)]


def test_who_holds_the_group_up_is_named_with_what_to_look_at():
    def named(*nodes: Watched) -> tuple[str, str] | None:
        found = hindrance({one["name"]: one for one in map(now.node, nodes)})
        return None if found is None else (found["node"], found["look_at"])

    fine = told("a")
    assert named(fine, told("b")) is None
    assert named(fine, told("b", "silent")) == ("b", "timeout_s")
    reader = told("b", queues={"packets_to_send": 0, "packets_to_read": 500})
    assert named(fine, reader) == ("b", "backlog_bytes")
    seeking = told("b", phase="gather", gather="the token is lost")
    assert named(fine, seeking) == ("b", "timeout_s")
    full = told("b", "up", status(drops={"buffer_full": 1}), status(drops={"buffer_full": 8}))
    assert named(fine, full) == ("b", "net.core.rmem_max")
    slow = told("b", "up", status(), status(counters={"pauses": 2}))
    assert named(fine, slow) == ("b", "timeout_s, the load of the machine")
    lossy = told("b", "up", status(), status(counters={"packets_received": 90}))
    assert named(fine, lossy) == ("b", "datagram_bytes, net.core.rmem_max, the network")


# What happened


def recent(*happened: dict[str, Any]) -> dict[str, Any]:
    return {"happened": [{"number": 0, "t_ns": 5, **one} for one in happened]}


def view(sentence: str, **more: Any) -> dict[str, Any]:
    return {"kind": "view", "sentence": sentence, "view": "7.a", "members": ["a"], **more}


def test_what_several_nodes_tell_of_one_view_is_one_entry_with_the_fullest_sentence():
    chronicle = Chronicle()
    chronicle.on_told(told("a"), recent(view("view 7.a")))
    first = chronicle.since("g", 0)
    chronicle.on_told(told("b"), recent(view("view 7.a; c gone: the token is lost", t_ns=3)))
    (entry,) = chronicle.since("g", first[0]["changed"])
    assert entry["id"] == first[0]["id"]
    assert entry["sentence"] == "view 7.a; c gone: the token is lost"
    assert set(entry["at"]) == {"a", "b"}
    assert entry["t_ns"] == "3"
    assert chronicle.since("g", entry["changed"]) == []
    assert chronicle.changes() == {"g": entry["changed"]}
    assert chronicle.since("other", 0) == []


def test_the_clock_of_another_machine_is_brought_to_ours():
    """It counts from another start: what it tells of now is now."""
    watching, chronicle = Watching(), Chronicle()
    watching.on_told.append(chronicle.on_told)
    here, there = told("a"), told("b")
    ours_ns = time.monotonic_ns()
    theirs_ns = ours_ns + 10**15
    for watched, machine, now_ns, view_id in (
        (here, watching.machine, ours_ns, "7.a"),
        (there, "elsewhere", theirs_ns, "8.a"),
    ):
        happened = recent(view(f"view {view_id}", view=view_id, t_ns=now_ns))
        answer = {**happened, "machine": machine, "now_ns": now_ns, "next": 1}
        watching._take_in(watched, 1, watched.status, answer)  # type: ignore[arg-type]
    assert (here.is_here, there.is_here) == (True, False)
    for entry in chronicle.since("g", 0):
        assert ours_ns <= int(entry["t_ns"]) <= time.monotonic_ns()


def test_the_token_is_compared_on_one_clock():
    """The one whose machine counts more came earlier."""
    first, last = told("a", token_ns=10**15 + 5), told("b", token_ns=10)
    first.shift_ns = -(10**15)
    (token,) = now.group("g", [first, last])["token"]
    assert token["node"] == "b"


def test_ends_and_faults_are_told():
    chronicle = Chronicle()
    chronicle.on_state(told("a", "gone"), "up")
    chronicle.on_state(told("a", "up"), "unknown")
    chronicle.on_fault("g", "kill", "kill -9 of a", ("a",))
    assert [entry["kind"] for entry in chronicle.since("g", 0)] == ["gone", "fault"]
    ((t_ns, kind),) = chronicle.faults("g", 0, 1 << 62)
    assert kind == "kill"
    numbers = [number for number, group, _ in chronicle.notable(0, 1 << 62)]
    assert numbers == [1, 2]
    assert chronicle.notable(1, 1 << 62) == [(2, "g", t_ns)]
    assert chronicle.notable(0, 0) == []


def test_the_group_that_was_quiet_for_longest_makes_room(monkeypatch):
    monkeypatch.setattr(chronicles, "GROUPS_MAX", 2)
    chronicle = Chronicle()
    for group in "abac":
        chronicle.on_fault(group, "kill", "kill -9", ())
    assert list(chronicle.changes()) == ["a", "c"]
    assert chronicle.since("b", 0) == []
    seen = chronicle.changes()["c"]
    for group in "bdc":
        chronicle.on_fault(group, "kill", "kill -9", ())
    assert len(chronicle.since("c", seen)) == 1, "whoever saw c before sees what is new"


def test_packets_that_come_again_in_a_burst_are_one_entry_that_grows():
    chronicle = Chronicle()
    received = 0
    for repeated in (0, BURST_PACKETS - 1, BURST_PACKETS, BURST_PACKETS):
        received += repeated
        counters = {"packets_received": received}
        chronicle.on_told(told("a", counters=counters), recent())
    (entry,) = chronicle.since("g", 0)
    assert entry["kind"] == "repeats"
    assert f"{2 * BURST_PACKETS} of {2 * BURST_PACKETS} packets" in entry["sentence"]


def test_names_stay_texts():
    """Names come from nodes, and may be anything; JSON carries them, and the page makes texts."""
    evil = "<img src=x onerror=alert(1)>"
    watched = told("a")
    watched.group, watched.node = evil, evil
    watching = Watching()
    watching._nodes[watched.path] = watched
    (group,) = now.groups(watching)
    assert group["name"] == evil
    assert evil in [node["name"] for node in group["nodes"]]
