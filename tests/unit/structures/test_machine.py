"""A machine: what its class must be, what a command does, and what stops it."""

import struct
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import pytest

from roundelay.core.ids import ViewId
from roundelay.structures import (
    Machine,
    MachineError,
    Now,
    Placed,
    Refused,
    Rehearsal,
    Stale,
    UpgradeError,
    read,
    write,
)
from roundelay.structures.methods import WriteMethod
from roundelay.structures.values import dumps

TERM = ViewId(1, "a")


def now(index: int = 0, time_us: int = 0) -> Now:
    return Now(index, TERM, "a", 7, time_us)


class Accounts(Machine):
    balances: dict[str, int]

    def __init__(self) -> None:
        self.balances = {}

    @write
    def deposit(self, who: str, amount: int = 1) -> int:
        """What is there afterwards."""
        if amount < 0:
            raise Refused("no negative amounts")
        self.balances[who] = self.balances.get(who, 0) + amount
        return self.balances[who]

    @write
    def stamp(self) -> list[Any]:
        return [self.now.index, self.now.sender, self.now.session, self.now.time_us]

    @write
    def broken(self) -> int:
        raise ZeroDivisionError("a bug")

    @write
    def lies(self) -> int:
        return "no int"  # type: ignore[return-value]

    @read
    def total(self) -> int:
        return sum(self.balances.values())

    @read
    def all(self) -> dict[str, int]:
        return self.balances


def command(*parts: object) -> bytes:
    return dumps(list(parts))


def reply_of(machine: Machine, method: str, reply: bytes) -> Any:
    found = vars(type(machine))[method]
    assert isinstance(found, WriteMethod)
    return found.arguments(type(machine)).decode_reply(reply)


def test_a_write_changes_the_state_and_replies():
    machine = Accounts()
    reply = machine.apply(command("deposit", 1, "ann", 10), now())
    assert reply_of(machine, "deposit", reply) == 10
    assert machine.balances == {"ann": 10}


def test_a_write_sees_where_it_stands_and_nobody_else_does():
    machine = Accounts()
    reply = machine.apply(command("stamp", 1), now(5, 99))
    assert reply_of(machine, "stamp", reply) == [5, "a", 7, 99]
    with pytest.raises(AttributeError, match="in writes"):
        _ = machine.now


def test_a_refusal_reaches_the_caller_and_the_machine_goes_on():
    log = Rehearsal(Accounts)
    bank = log.face()
    with pytest.raises(Refused, match="no negative amounts"):
        bank.deposit.wait("ann", -1)
    assert bank.deposit.wait("ann", 1) == 1


def test_any_other_exception_stops_the_machine_and_names_the_index():
    with pytest.raises(MachineError, match=r"Accounts.broken at index 3 .*ZeroDivision"):
        Accounts().apply(command("broken", 1), now(3))


def test_a_reply_that_does_not_fit_its_annotation_is_a_bug_of_the_machine():
    with pytest.raises(MachineError, match=r"Accounts.lies"):
        Accounts().apply(command("lies", 1), now())


@pytest.mark.parametrize(
    "text", [b"", b"[", b"\xff", b"{}", b"[]", b'["deposit"]', b'[1,1]', b'["deposit","1"]']
)  # fmt: skip
def test_what_is_no_command_is_refused_and_changes_nothing(text):
    machine = Accounts()
    with pytest.raises(Refused, match="no command"):
        reply_of(machine, "deposit", machine.apply(text, now()))
    assert machine.balances == {}


@pytest.mark.parametrize(
    "parts",
    [
        *(("withdraw", 1, "ann"), ("deposit", 2, "ann"), ("deposit", 1), ("deposit", 1, 5)),
        *(("deposit", 1, "ann", 1, 1), ("total", 1), ("balances", 1)),
    ],
)
def test_a_command_that_is_not_known_here_stops_this_node_and_says_what_to_do(parts):
    machine = Accounts()
    with pytest.raises(UpgradeError, match=r"at index 4 .*upgrade this node first"):
        machine.apply(command(*parts), now(4))
    assert machine.balances == {}


def test_arguments_that_a_command_lacks_get_their_defaults():
    machine = Accounts()
    machine.apply(command("deposit", 1, "ann"), now())
    assert machine.balances == {"ann": 1}


class Newer(Accounts):
    """The next version: `deposit` counts cents, and there is a `fee`."""

    @write(version=2)
    def deposit(self, who: str, amount: int = 1, fee: int = 0) -> int:
        cents = amount * 100 if self.now.version == 1 else amount
        self.balances[who] = self.balances.get(who, 0) + cents - fee
        return self.balances[who]


def test_a_newer_version_knows_which_version_wrote_a_command():
    machine = Newer()
    machine.apply(command("deposit", 1, "ann", 2), now())
    machine.apply(command("deposit", 2, "ann", 30, 5), now(1))
    assert machine.balances == {"ann": 225}


def test_a_subclass_replaces_a_write_and_inherits_the_others():
    log = Rehearsal(Newer)
    assert log.face().deposit.wait("ann", 5, fee=1) == 4
    assert log.face().stamp.wait()[0] == 1


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((1,), {}),
        (("ann", "x"), {}),
        (("ann", 1, 1), {}),
        (("ann",), {"who": "bob"}),
        (("ann",), {"other": 1}),
        ((), {"amount": 1}),
    ],
)
def test_arguments_that_do_not_fit_never_reach_the_log(args, kwargs):
    log = Rehearsal(Accounts)
    with pytest.raises(TypeError):
        log.face().deposit.wait(*args, **kwargs)
    assert log.entries == []


def test_the_error_names_the_argument():
    with pytest.raises(TypeError, match="deposit: who: int where str is wanted"):
        Rehearsal(Accounts).face().deposit.wait(1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [(("ann", 2), {}), (("ann",), {"amount": 2}), ((), {"amount": 2, "who": "ann"})],
)
def test_arguments_may_be_named(args, kwargs):
    assert Rehearsal(Accounts).face().deposit.wait(*args, **kwargs) == 2


def test_a_state_is_not_called_as_a_face_is():
    with pytest.raises(AttributeError, match="call plain methods"):
        _ = Accounts().deposit


def test_a_face_has_no_state():
    with pytest.raises(AttributeError, match="@read method of Accounts"):
        _ = Rehearsal(Accounts).face().balances


def test_a_read_gives_a_copy():
    log = Rehearsal(Accounts)
    bank = log.face()
    bank.deposit.wait("ann", 1)
    bank.all.stale()["ann"] = 100
    bank.all.wait()["bob"] = 100
    assert bank.all.stale() == {"ann": 1}


def test_the_face_tells_how_old_stale_reads_are():
    log = Rehearsal(Accounts, ("a", "b", "c"))
    minority = log.face("c")
    log.begin_term("a", "b")
    log.face("a").deposit.wait("ann", 5)
    assert (minority.total.stale(), minority.index, minority.primary) == (0, 0, False)
    job = log.start(minority.total())
    assert not job.done
    log.begin_term("a", "b", "c")
    assert job.result == 5
    assert (minority.total.stale(), minority.index, minority.primary) == (5, 1, True)


def test_a_write_in_a_minority_waits():
    log = Rehearsal(Accounts, ("a", "b", "c"))
    log.begin_term("a", "b")
    job = log.start(log.face("c").deposit("ann", 5))
    assert not job.done
    assert log.entries == []
    log.begin_term("a", "b", "c")
    assert job.result == 5


def test_a_command_of_a_named_session_counts_once_through_any_node():
    log = Rehearsal(Accounts, ("a", "b"))
    assert log.face("a").deposit.once("billing", 0).wait("ann", 5) == 5
    assert log.face("b").deposit.once("billing", 0).wait("ann", 5) == 5
    assert log.face("b").deposit.once("billing", 1).wait("ann", 5) == 10


# Classes that are refused when they are made.


def test_an_argument_without_annotation_is_refused():
    with pytest.raises(TypeError, match=r"put: argument 'x' needs an annotation"):

        class Bad(Machine):
            @write
            def put(self, x) -> int:
                return 1


def test_a_write_without_the_kind_of_its_reply_is_refused():
    with pytest.raises(TypeError, match="reply needs an annotation"):

        class Bad(Machine):
            @write
            def put(self, x: int):
                return 1


def test_an_annotation_that_cannot_be_checked_is_refused():
    with pytest.raises(TypeError, match=r"put: x: values of complex cannot be checked"):

        class Bad(Machine):
            @write
            def put(self, x: complex) -> int:
                return 1


def test_a_read_with_an_unknown_reply_is_refused():
    with pytest.raises(TypeError, match=r"get: the reply"):

        class Bad(Machine):
            @read
            def get(self) -> complex:
                return 1j


def test_open_argument_lists_are_refused():
    with pytest.raises(TypeError, match="name the arguments"):

        class Bad(Machine):
            @write
            def put(self, *x: int) -> int:
                return 1


@pytest.mark.parametrize("name", ["index", "apply", "now", "port", "primary"])
def test_names_that_the_machinery_needs_are_refused(name):
    with pytest.raises(TypeError, match=f"{name}: Machine needs this name"):
        type("Bad", (Machine,), {name: 1})
    with pytest.raises(TypeError, match=f"{name}: Machine needs this name"):
        type("Bad", (Machine,), {"__annotations__": {name: int}})


def test_kept_attributes_are_checked_when_the_class_is_made():
    with pytest.raises(TypeError, match="complex"):
        type("Bad", (Machine,), {"__annotations__": {"z": complex}})


# Snapshots.


def test_annotated_attributes_are_kept():
    machine, other = Accounts(), Accounts()
    machine.apply(command("deposit", 1, "ann", 2), now())
    state = machine.snapshot()
    assert isinstance(state, bytes)
    other.restore([state[:3], state[3:]])
    assert other.balances == {"ann": 2}


def test_an_attribute_that_would_be_lost_is_an_error():
    machine = Accounts()
    machine.extra = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"Accounts.extra would not be in the snapshot"):
        machine.snapshot()


class Grown(Accounts):
    limits: dict[str, int]
    ours: ClassVar[int] = 3

    def __init__(self) -> None:
        super().__init__()
        self.limits = {"all": 9}


def test_an_attribute_that_an_older_snapshot_lacks_stays_as_it_is():
    machine = Grown()
    state = Accounts().snapshot()
    assert isinstance(state, bytes)
    machine.restore([state])
    assert machine.limits == {"all": 9}


def test_an_attribute_that_is_not_known_here_stops_this_node():
    state = Grown().snapshot()
    assert isinstance(state, bytes)
    with pytest.raises(UpgradeError, match="'limits', which Accounts lacks"):
        Accounts().restore([state])


def test_a_stale_read_says_as_of_when_it_is_and_whether_others_may_have_written():
    log = Rehearsal(Accounts, ("a", "b", "c"))
    bank = log.face("a")
    bank.deposit.wait("ann", 5)
    assert bank.total.stale.placed() == (5, 1, True)
    log.begin_term("b", "c")
    log.face("b").deposit.wait("ann", 5)
    assert bank.total.stale.placed() == (5, 1, False)
    assert log.face("b").total.stale.placed() == Stale(10, 2, True)


# Codecs.


class Hex:
    """A codec for ints alone, which writes them in base 16."""

    def check(self, annotation: Any) -> None:
        if annotation is not int:
            raise TypeError("ints only")

    def encode(self, annotation: Any, value: Any) -> bytes:
        if type(value) is not int:
            raise TypeError("no int")
        return b"" if value == 0 else b"%x" % value

    def decode(self, annotation: Any, data: bytes) -> Any:
        return int(data or b"0", 16)


class Sums(Machine):
    codec = Hex()
    sum: int

    def __init__(self) -> None:
        self.sum = 0

    @write
    def add(self, one: int, two: int = 17) -> int:
        self.sum += one + two
        return self.sum

    @read
    def get(self) -> int:
        return self.sum


def test_a_codec_carries_arguments_replies_and_state():
    log = Rehearsal(Sums, ("a", "b"))
    assert log.face().add.wait(255, 0) == 255
    assert log.entries[0].payload.endswith(b'["add",1,2,0]\nff')
    assert log.face().add.wait(1) == 273
    assert log.restart("b").get.stale() == 273


def test_a_codec_refuses_arguments_before_they_are_sent():
    log = Rehearsal(Sums)
    with pytest.raises(TypeError, match="no int"):
        log.face().add.wait("x")  # type: ignore[arg-type]
    assert log.entries == []


def test_a_codec_is_asked_when_the_class_is_made():
    with pytest.raises(TypeError, match="ints only"):

        class Bad(Machine):
            codec = Hex()

            @write
            def put(self, x: str) -> int:
                return 1


@pytest.mark.parametrize(
    "text",
    [
        *(b'["add",1,1,1]', b'["add",1,1,1]\nf', b'["add",1,1,1]\nfff', b'["add",1,-1,1]\nf'),
        *(b'["add",1,"1",1]\nff', b'["add",1,1,1]\nxx'),
    ],
)
def test_damaged_arguments_of_a_codec_stop_the_node(text):
    with pytest.raises(UpgradeError, match="upgrade this node"):
        Sums().apply(text, now())


class Quads(Hex):
    """Eight bytes per int."""

    def encode(self, annotation: Any, value: Any) -> bytes:
        return struct.pack(">q", value)

    def decode(self, annotation: Any, data: bytes) -> Any:
        return struct.unpack(">q", data)[0]  # Its error is no ValueError.


class Messages(Hex):
    """Messages of protobuf."""

    def __init__(self) -> None:
        self.message = pytest.importorskip("google.protobuf.wrappers_pb2").Int64Value

    def encode(self, annotation: Any, value: Any) -> bytes:
        text: bytes = self.message(value=value).SerializeToString(deterministic=True)
        return text

    def decode(self, annotation: Any, data: bytes) -> Any:
        return self.message.FromString(data).value  # Its error is no ValueError.


@pytest.mark.parametrize("codec", [Quads, Messages])
def test_a_codec_that_cannot_decode_stops_the_node_whatever_it_raises(codec):
    class Encoded(Sums):
        pass

    Encoded.codec = codec()
    log = Rehearsal(Encoded, ("a", "b"))
    assert log.face().add.wait(255, 0) == 255
    assert log.restart("b").get.stale() == 255
    with pytest.raises(UpgradeError, match=r"upgrade this node first \(.*[eE]rror: "):
        Encoded().apply(b'["add",1,1,1]\nxx', now())
    with pytest.raises(ValueError, match="'sum' of the snapshot"):
        Encoded().restore([b"sum\n\x08"])


def test_a_machine_without_codec_does_not_read_what_a_codec_wrote():
    with pytest.raises(UpgradeError, match="not JSON"):
        Accounts().apply(b'["deposit",1,1,1]\nff', now())


# Terms.


class Members(Machine):
    seen: list[list[Any]]

    def __init__(self) -> None:
        self.seen = []

    def on_term(self, sessions: Mapping[str, int]) -> None:
        self.seen.append([self.now.index, sorted(sessions)])

    @write
    def touch(self) -> None:
        pass

    def restore(self, chunks: Iterable[bytes]) -> None:
        super().restore(chunks)
        self.seen.append(["version", self.snapshot_version])


def test_marks_are_told_in_their_place():
    log = Rehearsal(Members, ("a", "b"))
    log.face().touch.wait()
    log.begin_term("a")
    assert log.state().seen == [[0, ["a", "b"]], [1, ["a"]]]


def test_a_snapshot_tells_its_version():
    log = Rehearsal(Members, ("a", "b"))
    log.restart("b")
    assert ["version", 1] in log.state("b").seen


def test_a_reply_comes_with_its_place_in_the_log():
    log = Rehearsal(Accounts, ("a", "b"))
    bank = log.face("a")
    assert log.run(bank.deposit.placed("ann", 3)) == Placed(3, 0)
    assert log.run(log.face("b").deposit.placed("ann", 4)) == Placed(7, 1)
    assert log.run(bank.total.placed()) == Placed(7, 2)
    once = bank.deposit.once("billing", 1)
    assert log.run(once.placed("ann", 1)).index == 2
    log.run(bank.deposit("ann", 1))
    assert log.run(once.placed("ann", 1)) == Placed(8, 2)
    with pytest.raises(Refused) as told:
        bank.deposit.wait("ann", -1)
    assert told.value.index == 4
