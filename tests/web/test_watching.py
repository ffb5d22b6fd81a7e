"""Which nodes are watched, for how long, and what a wrong answer does."""

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.patience import until
from tests.web.answering import Answer, Answering, node
from tests.web.test_told import histogram, status

from roundelay.web import live, moments, relays, watching
from roundelay.web.dashboard import Dashboard
from roundelay.web.relays import Relays
from roundelay.web.watching import FOREIGN, Watching

SEEN_S = watching.EVERY_S + live.EVERY_S


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where control sockets are looked for, often."""
    for module in (watching, relays, moments):
        monkeypatch.setattr(module, "EVERY_S", 0.01)
    monkeypatch.setattr(watching, "IDLE_S", 0.01)
    monkeypatch.setattr(watching, "FIND_S", 0.01)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = tmp_path / "roundelay"
    path.mkdir(mode=0o700)
    return path


Start = Callable[..., Answering]


@pytest.fixture
def start(directory) -> Iterator[Start]:
    """Start a node, or something else, in the usual place."""
    started: list[Answering] = []

    def begin(name: str, answer: Answer | None = None) -> Answering:
        started.append(Answering(directory / f"{name}.sock", answer or node(name[-1])))
        return started[-1]

    yield begin
    for one in started:
        one.close()


@pytest.fixture
def dashboard() -> Iterator[Dashboard]:
    shown = Dashboard()
    shown.start()
    yield shown
    shown.stop()


def test_what_is_done_is_seen_within_a_second():
    """The waits, one after the other: until a node is asked again, until it counts as silent, until
    the page is told. How long the machine takes is not in our hands."""
    assert SEEN_S < watching.ANSWER_S + SEEN_S < 1.0


def states(shown: Dashboard) -> dict[str, str]:
    """The nodes that the page shows."""
    groups = shown.document()["groups"]
    return {one["name"]: one["state"] for group in groups for one in group["nodes"]}


def test_nodes_are_found_and_those_gone_for_long_are_forgotten(start, dashboard, monkeypatch):
    a, _ = start("g-a"), start("g-b")
    until(lambda: states(dashboard).get("b") == "up", "b")
    until(lambda: states(dashboard).get("a") == "up", "a")
    a.close()
    until(lambda: states(dashboard)["a"] == "gone", "the end of a")
    threads = threading.active_count()
    monkeypatch.setattr(watching, "FORGET_S", 0.05)
    until(lambda: states(dashboard)["a"] == "elsewhere", "a is forgotten; b still names it")
    until(lambda: threading.active_count() < threads, "and asked no more")
    with dashboard.watching.lock:
        assert len(dashboard.watching.nodes()) == 1


def test_sockets_that_killed_nodes_left_are_not_watched(directory, dashboard, start):
    for number in range(3):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(directory / f"g-old{number}.sock"))
    start("g-a")
    until(lambda: states(dashboard).get("a") == "up", "a")
    with dashboard.watching.lock:
        assert [watched.node for watched in dashboard.watching.nodes()] == ["a"]


def test_named_sockets_are_never_forgotten(directory, monkeypatch):
    monkeypatch.setattr(watching, "FORGET_S", 0.0)
    looking = Watching([directory / "g-a.sock"])
    looking.start()
    until(lambda: any(one.state == "gone" for one in looking.nodes()), "nobody is there")
    late = Answering(directory / "g-a.sock", node("a"))
    until(lambda: looking.nodes()[0].state == "up", "a")
    looking.stop()
    late.close()


def test_too_many_nodes_are_told_of_and_those_that_are_gone_make_room(
    start, dashboard, monkeypatch
):
    monkeypatch.setattr(watching, "NODES_MAX", 2)
    a = start("g-a")
    until(lambda: states(dashboard).get("a") == "up", "a")
    start("g-b")
    until(lambda: states(dashboard).get("b") == "up", "b")
    start("g-c")
    until(lambda: dashboard.document()["left_out"] == 1, "c is left out")
    assert states(dashboard)["c"] == "elsewhere"
    a.close()
    until(lambda: states(dashboard)["c"] == "up", "c has the place of a")
    until(lambda: dashboard.document()["left_out"] == 0, "nobody is left out")


WRONG: list[Any] = [
    {},
    {"peers": 1},
    {"status": 1},
    {**status("a"), "peers": ["a"]},
    {**status("a"), "view": {"id": 7}},
    {**status("a"), "counters": {}},
    {**status("a"), "drops": {"x": "y"}},
    {**status("a"), "token_ns": "soon"},
    {**status("a"), "latency": {**histogram(), "counts": [1]}},
    {**status("a"), "uptime_s": float("nan")},
    {**status("a"), "log": []},
]


def test_a_wrong_answer_ends_nothing(start, dashboard):
    wrong = start("g-a")
    until(lambda: states(dashboard).get("a") == "up", "a")
    for told in WRONG:
        wrong.answer = lambda request, told=told: told
        until(lambda: states(dashboard).get("a") != "up", f"{told} is noticed")
        (group,) = dashboard.document()["groups"]
        assert group["nodes"][0]["warnings"] == [FOREIGN]
        wrong.answer = node("a")
        until(lambda: states(dashboard).get("a") == "up", f"a is back after {told}")


def test_a_wrong_relay_ends_nothing(start):
    peers = {"a": {"a": "127.0.0.1:1"}}
    right = {"peers": peers, "cuts": [], "loss": 0, "duplicate": 0, "reorder": 0, "delay_s": 0}
    wrong = start("relay.1", lambda request: right)
    looking = Relays()
    looking.start()
    answers: list[Any] = [{}, {"peers": 1}, {"peers": peers}, []]
    for told in answers:
        until(lambda: looking.of(peers) is not None, "the relay")
        wrong.answer = lambda request, told=told: told
        until(lambda: looking.of(peers) is None, f"{told} is noticed")
        assert looking.of({"a": 3}) is None
        wrong.answer = lambda request: right
    until(lambda: looking.of(peers) is not None, "the relay again")
    looking.stop()
