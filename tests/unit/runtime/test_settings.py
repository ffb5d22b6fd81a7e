"""What a node is told, and what is refused with a sentence."""

import dataclasses
import inspect

import pytest

import roundelay
from roundelay.runtime.errors import ConfigError
from roundelay.runtime.settings import SETTINGS, Settings, settings
from roundelay.runtime.terms import settings_differ, terms_of

PEERS = {"a": "127.0.0.1:1", "b": "127.0.0.1:2"}
TWICE: dict[object, str] = {"a": "127.0.0.1:1", 1: "127.0.0.1:2", "1": "127.0.0.1:3"}
MANY = {f"n{i}": f"127.0.0.1:{100 + i}" for i in range(32)}
GOOD = {"group": "g", "node": "a", "peers": PEERS}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"group": ""}, "'group' is missing"),
        ({"group": "g" * 65}, "cannot name a group; use 1 to 64 printable characters"),
        ({"node": "a\n"}, "cannot name a node"),
        ({"group": ".."}, "'..' cannot name a group"),
        ({"group": "."}, "'.' cannot name a group"),
        ({"group": "../up"}, "'../up' cannot name a group"),
        ({"group": "/"}, "'/' cannot name a group"),
        ({"node": "a/b"}, "'a/b' cannot name a node"),
        ({"node": "a\0"}, "cannot name a node"),
        ({"node": "\x1b[2J"}, "cannot name a node"),
        ({"node": "\ud800"}, "cannot name a node"),
        ({"peers": {"a": "127.0.0.1:1", "..": "127.0.0.1:2"}}, "'..' cannot name a node"),
        ({"group": 7}, "group=7 is not of type str"),
        ({"state": 7}, "state=7 is not the name of a file or directory"),
        ({"trace": "a\0b"}, "is not the name of a file or directory"),
        ({"control": "\ud800"}, "is not the name of a file or directory"),
        ({"timeout_s": True}, "timeout_s=True is not of type number"),
        ({"timeout_s": float("nan")}, "timeout_s=nan is not between"),
        ({"node": "c"}, "peers has no address for this node, 'c'; add it"),
        ({"peers": {"a": "here"}}, "peer 'a': 'here' is no address; write host:port"),
        ({"peers": ["a"]}, "'peers' is a table of names"),
        ({"peers": {**PEERS, "c": PEERS["b"]}}, "'b' and 'c' have one address, 127.0.0.1:2; give"),
        ({"peers": TWICE}, "'peers' has a name twice; give each once"),
        ({"peers": {**PEERS, **MANY}}, "peers lists 34 nodes; a group has at most 32: make"),
        ({"bind": "x"}, "bind: 'x' is no address"),
        ({"trace_roll_s": 1}, "trace_roll_s says when the trace is rolled; set trace too"),
        ({"trace": "t", "trace_roll_s": 0.5}, "trace_roll_s=0.5 is not between 1 and 3600 seconds"),
        ({"trace": "t", "trace_roll_s": "1"}, "trace_roll_s='1' is not of type number"),
        ({"engine": "paxos"}, "no engine for real nodes is called 'paxos'; use "),
        ({"engine": "template"}, "no engine for real nodes is called 'template'"),
        (
            {"engine": "fc", "options": {"rules": "paper"}},
            "fc with rules=paper runs on static groups only, and real nodes have views; leave",
        ),
        (
            {"engine": "st", "options": {"rules": "paper", "medium": "channel"}},
            "st with rules=paper runs on static groups only, and real nodes have views; leave",
        ),
        (
            {"engine": "st", "options": {"medium": "channel"}},
            "st with medium=channel needs a network that is one channel, which only the simulator",
        ),
        ({"timeout_s": 0.001}, "timeout_s=0.001 is not between 0.02 and 60 seconds"),
        ({"timeout_s": "soon"}, "timeout_s='soon' is not of type number"),
        ({"datagram_bytes": 100_000}, "datagram_bytes=100000 is not between"),
        ({"backlog_bytes": 5}, "backlog_bytes=5 is less than a megabyte"),
        ({"colour": "red"}, "there is no setting 'colour'; there are: backlog_bytes, bind"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(change, sentence):
    with pytest.raises(ConfigError) as refused:
        settings({**GOOD, **change})
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_and_a_call_give_the_same_settings():
    told = settings({**GOOD, "options": {"idle_rotations": 5, "rules": "safe"}, "state": "st"})
    assert told.options == {"idle_rotations": "5", "rules": "safe"}
    assert told == Settings(**{f: getattr(told, f) for f in SETTINGS})
    assert str(told.listen) == "127.0.0.1:1"
    assert str(settings({**GOOD, "bind": "0.0.0.0:7"}).listen) == "0.0.0.0:7"


def test_join_names_every_setting_with_its_default():
    """Spelled out, so that editors and type checkers know them."""
    parameters = inspect.signature(roundelay.join).parameters
    assert [name for name in parameters if name != "machine"] == list(SETTINGS)
    for name, setting in SETTINGS.items():
        if setting.default is not dataclasses.MISSING:
            assert parameters[name].default == setting.default, name
    assert inspect.signature(roundelay.blocking.join).parameters == parameters


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"fsync": "interval"}, "fsync says when the journal is synced, and there is none"),
        ({"retain_bytes": 1 << 30}, "retain_bytes says how much of the journal is kept"),
        ({"journal": "j", "state": "s"}, "journal keeps what state does; leave out state"),
        ({"journal": "j", "fsync": "sometimes"}, "fsync='sometimes' is not known"),
        ({"journal": "j", "fsync": "interval:0ms"}, "the interval must be between"),
        ({"journal": "j", "segment_bytes": 100}, "less than a megabyte"),
        ({"journal": "j", "retain_bytes": 1 << 20}, "less than one segment"),
        ({"journal": "j", "snapshot_bytes": 1}, "less than 65536 bytes"),
        ({"journal": "j", "catchup_bytes_per_s": 1}, "less than 65536 bytes"),
        ({"journal": "j", "catchup_share": 1.0}, "not between 0 and 0.9"),
        ({"journal": "j", "retain_s": 0}, "retain_s=0 keeps nothing"),
        ({"retain_s": 60.0}, "retain_s says how long the journal is kept"),
        (
            {"journal": "j", "engine": "fifo"},
            "the engine 'fifo' cannot carry a log: its members need not deliver in one order "
            r"\(property O6\); use .*totem.*, or leave out journal",
        ),
        ({"journal": "j", "retain_bytes": "much"}, "not of type int"),
    ],
)
def test_settings_of_a_journal_that_make_no_sense(told, why):
    with pytest.raises(ConfigError, match=why):
        settings({"group": "g", "node": "a", "peers": {"a": "127.0.0.1:1"}, **told})


def test_a_machine_without_a_log_is_refused():
    class Nothing:
        def apply(self, entry: object) -> None: ...

        def snapshot(self) -> bytes:
            return b""

        def restore(self, chunks: object) -> None: ...

    with pytest.raises(ConfigError, match="set journal too"):
        roundelay.join("g", node="a", peers={"a": "127.0.0.1:1"}, machine=Nothing())


def test_peers_compare_whether_they_keep_a_log():
    told = {"group": "g", "node": "a", "peers": {"a": "127.0.0.1:1"}}
    with_log = terms_of(settings({**told, "journal": "j"}), 1400, {})
    without = terms_of(settings(told), 1400, {})
    sentence = settings_differ("b", with_log, without)
    assert sentence == (
        "b runs with journal not given, this node yes: the two do not meet; give both the same "
        "journal"
    )
