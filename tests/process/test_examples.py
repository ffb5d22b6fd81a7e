"""Every example runs, as its first lines say; and those that promise more keep it in partitions."""

import itertools
import json
import random
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.patience import LIMIT_S, until

from roundelay.runtime.relay import RelayProcess
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process

EXAMPLES = Path(__file__).parents[2] / "examples"
RELAYED = Path(__file__).with_name("relayed.py")
WAITING = "waiting for the others"
SHARED = {"replica.py"}
"""Not run by themselves, but by others that import them."""


class Terminal:
    """One node of an example: what is typed, and the lines it prints."""

    def __init__(self, *command: str) -> None:
        self.lines: list[str] = []
        self.mark = 0
        """Lines before this one are not waited for."""
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def waits_for(self, line: str) -> None:
        until(lambda: self._has_said(line), f"the line {line!r}")

    def _has_said(self, line: str) -> bool:
        ended = self.process.poll() is not None
        if ended:
            self._reader.join()
        if line in self.lines[self.mark :]:
            return True
        assert self.process.stderr is not None
        assert not ended, f"it ended: {self.process.stderr.read()}"
        return False

    def ends(self) -> None:
        """End its input, and wait until it has ended in good order."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        assert self.process.wait(LIMIT_S) == 0, self.process.stderr.read()
        self._reader.join()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


class Terminals:
    """An example in three terminals, a, b and c, with a relay between them."""

    def __init__(
        self,
        name: str,
        *,
        relay: bool = False,
        state: Path | None = None,
        journal: Path | None = None,
        http: int | None = None,
    ) -> None:
        self._name = name
        self._http = http
        self._directories = {"--state": state, "--journal": journal}
        self._relay: RelayProcess | None = None
        self._tables: dict[str, dict[str, str]] = {}
        self._port = ""
        self.of: dict[str, Terminal] = {}
        if relay:
            self._relay = RelayProcess(free_addresses("abc"))
            self._tables = self._relay.peers
        else:
            self._port = str(base_port())

    def __enter__(self) -> "Terminals":
        for node in "abc":
            self.start(node)
        return self

    def start(self, node: str) -> None:
        example = str(EXAMPLES / self._name)
        more = []
        for flag, directory in self._directories.items():
            if directory is not None:
                more += [flag, str(directory / node)]
        if self._http is not None:
            more += ["--http", str(self._http)]
        if self._relay is None:
            self.of[node] = Terminal(example, node, self._port, *more)
        else:
            peers = json.dumps(self._tables[node])
            self.of[node] = Terminal(str(RELAYED), peers, example, node, *more)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:  # Shown with the failure.
            for node, terminal in self.of.items():
                sys.stdout.write(f"{node}: {terminal.lines}\n")
        for terminal in self.of.values():
            terminal.close()
        if self._relay is not None:
            self._relay.close()

    def relay(self, command: str) -> None:
        assert self._relay is not None
        self._relay.command(command)

    def mark(self) -> None:
        """Wait for lines that are printed from now on."""
        for terminal in self.of.values():
            terminal.mark = len(terminal.lines)

    def wait_for(self, line: str, at: str = "abc") -> None:
        for node in at:
            self.of[node].waits_for(line)

    def ask(self, node: str, question: str, answer: str) -> None:
        """Type something new, and wait for what is said to it."""
        self.of[node].mark = len(self.of[node].lines)
        self.of[node].type(question)
        self.of[node].waits_for(answer)

    def kill(self, nodes: str) -> None:
        for node in nodes:
            self.of[node].process.kill()
        for node in nodes:
            self.of[node].close()


def base_port() -> int:
    """The first of three free ports in a row. Chance keeps tests that run at the same time apart,
    also while nodes of theirs are dead."""
    for _ in range(1000):
        first = random.randrange(21_000, 30_000, 3)
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
        try:
            for i, sock in enumerate(sockets):
                sock.bind(("127.0.0.1", first + i))
        except OSError:
            continue
        finally:
            for sock in sockets:
                sock.close()
        return first
    raise AssertionError("no three free ports in a row")


def values(terminal: Terminal) -> list[int]:
    """What a counter showed."""
    return [int(line[6:]) for line in terminal.lines if line.startswith("value ")]


def test_every_example_is_run():
    here = Path(__file__).read_text()
    for path in EXAMPLES.glob("*.py"):
        assert path.name in SHARED or f'Terminals("{path.name}"' in here, path.name


def test_hello():
    with Terminals("hello.py") as nodes:
        for terminal in nodes.of.values():
            terminal.ends()
        greetings = [
            [line for line in terminal.lines if "hello from" in line]
            for terminal in nodes.of.values()
        ]
    assert greetings[0] == greetings[1] == greetings[2]
    assert sorted(line[3:] for line in greetings[0]) == [f"hello from {node}" for node in "abc"]


def test_chat():
    with Terminals("chat.py") as nodes:
        nodes.wait_for("-- here: a, b, c")
        nodes.of["a"].type("anybody there?")
        nodes.wait_for("a: anybody there?", at="bc")
        nodes.of["b"].type("yes, here")
        nodes.wait_for("b: yes, here", at="ac")
        for terminal in nodes.of.values():
            terminal.ends()


def test_regions():
    with Terminals("regions.py") as nodes:
        nodes.wait_for("ready")
        nodes.of["c"].type("ab.stock=5")  # It holds no replica, and has its receipt.
        nodes.wait_for("ab.stock=5", at="ab")
        nodes.of["a"].type("ab.stock=4 bc.stock=1")
        nodes.wait_for("ab.stock=4", at="a")
        nodes.wait_for("ab.stock=4 bc.stock=1", at="b")
        nodes.wait_for("bc.stock=1", at="c")
        nodes.ask("c", "zz.stock=1", "`to` names 'z', which is no peer; the peers are a, b, c")
        nodes.of["c"].type("abc.price=9")
        nodes.wait_for("abc.price=9 bc.stock=1", at="c")
        for terminal in nodes.of.values():
            terminal.ends()
        assert not any("ab.stock" in line for line in nodes.of["c"].lines)


def test_counter():
    with Terminals("counter.py") as nodes:
        nodes.wait_for("value 0")
        for node, addition in zip("abc", ("1", "10", "100"), strict=True):
            nodes.of[node].type(addition)
        nodes.wait_for("value 111")
        for terminal in nodes.of.values():
            terminal.ends()
        shown = [values(terminal)[:4] for terminal in nodes.of.values()]
    assert shown[0] == shown[1] == shown[2]


def test_a_counter_that_is_cut_off_does_not_count_but_its_additions_are_not_lost():
    with Terminals("counter.py", relay=True) as nodes:
        nodes.wait_for("value 0")
        nodes.of["c"].type("1")
        nodes.wait_for("value 1")
        nodes.mark()
        nodes.relay("partition a,b c")
        nodes.of["a"].type("10")
        nodes.of["c"].type("100")
        nodes.wait_for("value 11", at="ab")
        nodes.wait_for(WAITING, at="c")
        nodes.relay("heal")
        nodes.wait_for("value 111")
        shown = [[*dict.fromkeys(values(terminal))] for terminal in nodes.of.values()]
    assert shown[0] == shown[1] == [0, 1, 11, 111]
    assert set(shown[2]) - {11} == {0, 1, 111}


def test_counters_agree_through_many_partitions_and_count_every_addition_once():
    """Every addition is a power of two of its own, so a value says which additions are in it."""
    chance = random.Random(7)
    splits = ["a,b c", "a b,c", "a,c b", "a b c"]
    typed = 0
    with Terminals("counter.py", relay=True) as nodes:
        nodes.wait_for("value 0")
        for split in (*splits, *chance.sample(splits, 4)):
            nodes.relay(f"partition {split}")
            fewer = nodes.of[min(split.split(), key=len)]
            for noticed in (True, False):
                for _ in range(3):
                    for node in "abc":
                        nodes.of[node].type(str(1 << typed))
                        typed += 1
                if noticed:
                    until(lambda: fewer.lines[-1] == WAITING, "a minority that knows it")  # noqa: B023
            if chance.random() < 0.5:
                nodes.relay(f"partition {chance.choice(splits)}")
            nodes.relay("heal")
            if chance.random() < 0.5:
                nodes.wait_for(f"value {(1 << typed) - 1}")
        nodes.wait_for(f"value {(1 << typed) - 1}")
        shown = {node: values(terminal) for node, terminal in nodes.of.items()}
    for node, seen in shown.items():
        assert seen == sorted(seen), f"{node} went back"
    every = sorted(set().union(*shown.values()))
    for smaller, larger in itertools.pairwise(every):
        assert smaller & larger == smaller, f"{smaller:b} and {larger:b} are two histories"


def test_a_counter_that_was_killed_takes_the_value_of_the_others():
    with Terminals("counter.py") as nodes:
        nodes.wait_for("value 0")
        nodes.of["b"].type("3")
        nodes.wait_for("value 3")
        nodes.of["b"].close()
        nodes.of["a"].type("4")
        nodes.wait_for("value 7", at="ac")
        nodes.start("b")
        nodes.wait_for("value 7", at="b")
        nodes.of["b"].type("5")
        nodes.wait_for("value 12")


def test_a_ledger_outlives_all_its_nodes(tmp_path):
    with Terminals("ledger.py", journal=tmp_path) as nodes:
        nodes.ask("a", "10", "booked as entry 0")
        nodes.wait_for("0 a: +10, total 10")
        nodes.kill("c")
        nodes.ask("b", "-3", "booked as entry 1")
        nodes.kill("ab")
        for node in "abc":
            nodes.start(node)
        nodes.wait_for("1 b: -3, total 7")
        nodes.ask("c", "5", "booked as entry 2")
        nodes.wait_for("2 c: +5, total 12")
        for terminal in nodes.of.values():
            terminal.ends()


def test_hits_outlive_all_their_nodes(tmp_path):
    with Terminals("hits.py", journal=tmp_path) as nodes:
        nodes.ask("a", "10", "value 10")
        nodes.kill("c")
        nodes.ask("b", "-3", "value 7")
        nodes.kill("ab")
        for node in "abc":
            nodes.start(node)
        nodes.ask("c", "show", "value 7")
        nodes.ask("b", "5", "value 12")
        for terminal in nodes.of.values():
            terminal.ends()


def web(port: int, method: str) -> object:
    """What a web server at this port answers to a request for the hits."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/hits", method=method)
    try:
        with urllib.request.urlopen(asked, timeout=LIMIT_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as e:
        with e:
            return e.code
    except OSError:
        return None  # It has not started yet.


def serves(port: int, hits: int, *, fresh: bool = True) -> None:
    until(lambda: web(port, "GET") == {"hits": hits, "fresh": fresh}, f"{hits} hits at {port}")


def counted_behind_web_servers(nodes: Terminals, http: int) -> None:
    """Hits that are counted by three web servers, two of which are killed."""
    serves(http, 0)
    assert web(http, "POST") == 1
    serves(http + 1, 1)
    nodes.kill("a")
    assert web(http + 1, "POST") == 2
    serves(http + 2, 2)
    nodes.kill("b")
    serves(http + 2, 2, fresh=False)
    assert web(http + 2, "POST") == 503  # Nothing was counted.
    nodes.start("a")
    serves(http, 2)
    assert web(http, "POST") == 3


def test_hits_behind_fastapi(tmp_path):
    http = base_port()
    with Terminals("hits_fastapi.py", journal=tmp_path, http=http) as nodes:
        counted_behind_web_servers(nodes, http)


def test_hits_behind_flask(tmp_path):
    http = base_port()
    with Terminals("hits_flask.py", journal=tmp_path, http=http) as nodes:
        counted_behind_web_servers(nodes, http)


def test_a_bank_without_asyncio(tmp_path):
    with Terminals("bank.py", journal=tmp_path) as nodes:
        nodes.ask("a", "ann 10", "ann has 10, all have 10")
        nodes.ask("b", "bob 5", "bob has 5, all have 15")
        nodes.kill("a")
        nodes.ask("c", "ann -3", "ann has 7, all have 12")
        nodes.ask("b", "ann -8", "refused: ann has only 7")
        nodes.start("a")
        nodes.ask("a", "bob 1", "bob has 6, all have 13")
        for terminal in nodes.of.values():
            terminal.ends()


def test_dictionary():
    with Terminals("kv.py") as nodes:
        nodes.wait_for(WAITING)
        nodes.wait_for("ready")
        nodes.ask("a", "set colour deep red", "ok: set colour deep red")
        nodes.ask("b", "get colour", "colour = deep red")
        nodes.ask("c", "set shape round", "ok: set shape round")
        nodes.ask("a", "del colour", "ok: del colour")
        nodes.ask("b", "get colour", "no colour")
        nodes.ask("b", "show", "shape = round")
        nodes.ask("b", "help", "type: set NAME VALUE, get NAME, del NAME, or show")
        for terminal in nodes.of.values():
            terminal.ends()


@pytest.mark.parametrize("disk", [False, True], ids=["memory", "disk"])
def test_a_dictionary_that_was_killed_has_everything_again(tmp_path, disk):
    with Terminals("kv.py", state=tmp_path if disk else None) as nodes:
        nodes.wait_for("ready")
        nodes.ask("b", "set before 1", "ok: set before 1")
        nodes.kill("b")
        nodes.ask("a", "set meanwhile 2", "ok: set meanwhile 2")
        nodes.ask("c", "del before", "ok: del before")
        nodes.start("b")
        nodes.wait_for("ready", at="b")
        nodes.ask("b", "show", "meanwhile = 2")
        nodes.ask("b", "set after 3", "ok: set after 3")
        nodes.ask("c", "get after", "after = 3")
        nodes.ask("c", "show", "after = 3, meanwhile = 2")


def test_a_dictionary_that_is_cut_off_answers_when_it_is_back():
    with Terminals("kv.py", relay=True) as nodes:
        nodes.wait_for("ready")
        nodes.ask("c", "set owner c", "ok: set owner c")
        nodes.mark()
        nodes.relay("partition a,b c")
        nodes.wait_for(WAITING, at="c")
        nodes.ask("c", "set late 1", "set late 1: waits for the others")
        nodes.ask("c", "get owner", "get owner: waits for the others")
        nodes.ask("a", "set owner a", "ok: set owner a")
        nodes.ask("b", "get late", "no late")
        nodes.ask("c", "show", "when last seen: owner = c")
        said = nodes.of["c"].lines
        assert "ok: set late 1" not in said
        nodes.relay("heal")
        nodes.wait_for("owner = a", at="c")
        assert "owner = c" not in said
        assert "ok: set late 1" in said
        nodes.ask("a", "get late", "late = 1")


def test_a_dictionary_with_disks_outlives_the_death_of_all_and_two_of_three_go_on(tmp_path):
    with Terminals("kv.py", state=tmp_path) as nodes:
        nodes.wait_for("ready")
        nodes.ask("a", "set kept 1", "ok: set kept 1")
        nodes.kill("abc")
        nodes.start("b")
        nodes.start("c")
        nodes.wait_for("ready", at="bc")
        nodes.ask("c", "get kept", "kept = 1")
        nodes.ask("c", "set kept 2", "ok: set kept 2")
        nodes.start("a")
        nodes.wait_for("ready", at="a")
        nodes.ask("a", "get kept", "kept = 2")


def test_a_dictionary_that_restarts_among_those_who_missed_a_write_does_not_forget_it(tmp_path):
    with Terminals("kv.py", relay=True, state=tmp_path) as nodes:
        nodes.wait_for("ready")
        nodes.mark()
        nodes.relay("partition a,b c")
        nodes.wait_for(WAITING, at="c")
        nodes.ask("a", "set kept 1", "ok: set kept 1")
        nodes.kill("b")
        nodes.relay("partition a b,c")
        nodes.start("b")
        nodes.wait_for("ready", at="bc")
        nodes.ask("c", "get kept", "kept = 1")


def test_work_queue():
    jobs = [f"job{number}" for number in range(9)]
    with Terminals("work_queue.py") as nodes:
        for i, job in enumerate(jobs):
            nodes.of["abc"[i % 3]].type(job)
        for job in jobs:
            nodes.wait_for(f"{job} is done")
        for terminal in nodes.of.values():
            terminal.ends()
        begun = [line for node in nodes.of.values() for line in node.lines if "doing" in line]
    assert sorted(begun) == [f"doing {job}" for job in jobs]


def test_a_work_queue_that_is_cut_off_begins_nothing():
    jobs = {node: [f"{node}{number}" for number in range(6)] for node in "abc"}
    with Terminals("work_queue.py", relay=True) as nodes:
        nodes.of["a"].type("first")
        nodes.wait_for("first is done")
        nodes.mark()
        nodes.relay("partition a,b c")
        nodes.wait_for(WAITING, at="c")
        alone = len(nodes.of["c"].lines)
        for node in "abc":
            for job in jobs[node]:
                nodes.of[node].type(job)
        for job in jobs["a"] + jobs["b"]:
            nodes.wait_for(f"{job} is done", at="ab")
        assert nodes.of["c"].lines[alone:] == []
        nodes.relay("heal")
        for job in jobs["c"]:
            nodes.wait_for(f"{job} is done")
        begun = [line for node in nodes.of.values() for line in node.lines if "doing" in line]
    added = ["first", *jobs["a"], *jobs["b"], *jobs["c"]]
    assert sorted(begun) == sorted(f"doing {job}" for job in added)
