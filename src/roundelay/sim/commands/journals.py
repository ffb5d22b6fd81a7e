"""Scenario commands about the replicated log: journals and their disks, appends, reads, logs."""

from typing import TYPE_CHECKING

from roundelay.core.log import Checkpoint, Entries, LogRecord, Mark
from roundelay.group.body import unpack
from roundelay.sim.arguments import exactly, none_left, split
from roundelay.sim.clients import CALLS
from roundelay.sim.disk import Mood, Policy
from roundelay.sim.host import Host
from roundelay.sim.host_log import HostLog, PowerCut
from roundelay.sim.units import duration_ns, size_bytes

if TYPE_CHECKING:
    from roundelay.sim.runner import ScenarioRunner


def journal(runner: "ScenarioRunner", arguments: list[str]) -> None:
    if runner.has_world:
        raise ValueError("this comes before the nodes command")
    words, options = split(arguments)
    runner.setup.set_journals(options, frozenset(words) or None)


def fsync(runner: "ScenarioRunner", arguments: list[str]) -> None:
    if runner.has_world:
        raise ValueError("this comes before the nodes command")
    words, options = split(arguments)
    (policy,) = exactly(1, words, "when records count as stored: always, interval or off")
    if policy not in list(Policy):
        raise ValueError(f"the policy is one of {', '.join(Policy)}")
    runner.setup.policy = Policy(policy)
    runner.setup.sync_ns = duration_ns(options.pop("sync", "1ms"))
    none_left(options)


def append(runner: "ScenarioRunner", arguments: list[str]) -> None:
    words, options = split(arguments)
    node, payload = exactly(2, words, "a node and a text")
    times = int(options.pop("times", "1"))
    size = size_bytes(options.pop("size", "0"))
    session = options.pop("session", "")
    number = options.pop("number", None)
    opens = options.pop("open", "")
    none_left(options)
    if opens not in ("", "once"):
        raise ValueError("open=once says that the client opens its session once, at one node")
    if number is not None and not session:
        raise ValueError("only messages of a named session have numbers; write session=NAME")
    host, log = _log(runner, node)
    if host.alive:
        data = payload.encode().ljust(size, b"\0")
        at = None if number is None else int(number)
        log.append(data, session, at, times, once=opens == "once")


def read(runner: "ScenarioRunner", arguments: list[str]) -> None:
    stale = "stale" in arguments[1:]
    (node,) = exactly(1, [a for a in arguments if a != "stale"], "a node, and stale if you like")
    host, log = _log(runner, node)
    if host.alive:
        (log.read_stale if stale else log.read)()


def call(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """A client calls a replicated machine of a node."""
    node, op, *words = arguments if len(arguments) > 1 else (*arguments, "", "")
    if op not in CALLS or len(words) != CALLS[op].words:
        raise ValueError(
            "write a node and a call: set x 5, revise x 5, get x, pop x, delete x, pair 5, "
            "both, lend x 5, recall x, add 5, value, acquire, release, lead, resign, enter, "
            "leave, put 5, take, done, back, include x, exclude x, contains x, offer 5 or highest"
        )
    host, log = _log(runner, node)
    if not runner.setup.objects:
        raise ValueError("there are no machines; write before the nodes: journal objects=yes")
    if host.alive:
        assert log.clients is not None
        log.clients.call(op, words)


def snapshot(runner: "ScenarioRunner", arguments: list[str]) -> None:
    (node,) = exactly(1, arguments, "one node")
    host, log = _log(runner, node)
    if host.alive:
        log.snapshot()


def set_disk(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """Say what a disk does from now on, or print what is on it."""
    if len(arguments) == 1:
        for line in _disk_lines(runner, runner.host(arguments)):
            runner.print(line)
        return
    node, mood = exactly(2, arguments, "a node and what its disk does, like: disk a slow")
    if mood not in list(Mood):
        raise ValueError(f"a disk is one of {', '.join(Mood)}")
    _, log = _log(runner, node)
    runner.world.set_disk(node, Mood(mood))
    assert log.disk.mood is Mood(mood)


def blackout(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """All machines lose power at once."""
    words, options = split(arguments)
    exactly(0, words, "options alone")
    power = power_cut(options)
    none_left(options)
    for node in runner.world.nodes:
        runner.world.crash(node, power=power)


def recover(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """An operator goes on with what is left."""
    words, options = split(arguments)
    lost = options.pop("lost", "")
    none_left(options)
    if not words:
        raise ValueError("write the nodes that survived, like: recover a b lost=c")
    for node in words:
        _log(runner, node)
    others = [runner.node(node) for node in lost.split(",") if node]
    if both := [node for node in others if node in words]:
        raise ValueError(f"{both[0]} cannot both survive and be lost")
    runner.world.recover(*words, lost=others)


def power_cut(options: dict[str, str]) -> PowerCut:
    """How the power fails, by the options of a command, which are taken out of them."""
    keep, torn, garbled = (options.pop(name, None) for name in ("keep", "torn", "garbled"))
    if keep is None and (torn or garbled) is None:
        return PowerCut()
    at = garbled if torn is None else torn
    return PowerCut(int(keep or 0), None if at is None else int(at), garbled is not None)


def print_logs(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """What each node has in its log, in which state that is, and who votes."""
    for node in arguments or runner.world.nodes:
        host, log = _log(runner, node)
        entries = " ".join(_entries(runner, log.view)) or "empty"
        if not host.alive:
            runner.print(f"{node}: down")
            continue
        status = host.core.status.log
        assert status is not None
        voters = f" of {','.join(status.voters)}" if status.voters else ""
        said = f"{status.state}{voters}, {status.condition}, committed {status.committed}"
        runner.print(f"{node}: {entries}; {said}")


def _entries(runner: "ScenarioRunner", records: list[LogRecord]) -> list[str]:
    said: list[str] = []
    terms = sorted(runner.primaries)
    for record in records:
        if isinstance(record, Checkpoint) and record.place.length and not said:
            said.append(f"...{record.place.length}")
        if not isinstance(record, Entries) or not record.head.count:
            continue
        head = record.head
        term = terms.index(head.term) + 1 if head.term in terms else head.term
        payloads = unpack(record.body, head.count)
        assert isinstance(payloads, tuple)
        said += [f"{_text(payload)}@{term}" for payload in payloads]
    return said


def _text(payload: bytes) -> str:
    text = payload.rstrip(b"\0").decode(errors="replace")
    return text if 0 < len(text) <= 8 and text.isprintable() else f"{len(payload)}B"


def _disk_lines(runner: "ScenarioRunner", host: Host) -> list[str]:
    """The records on a disk, each with whether it is on the platter."""
    if host.log is None:
        raise ValueError(f"{host.name} has no journal; write: journal")
    disk, lines = host.log.disk, []
    for i, kept in enumerate(disk.written):
        where = "synced" if i < disk.synced else "written"
        lines.append(f"{where} {_said(runner, kept.record()) if kept.whole else 'damaged'}")
    lines += [f"snapshot at {index}" for index in sorted(disk.snapshots)]
    return lines


def _said(runner: "ScenarioRunner", record: LogRecord) -> str:
    match record:
        case Mark():
            return f"mark {record.term} base {record.base} voters {','.join(record.voters)}"
        case Checkpoint():
            return f"checkpoint {record.place.term} {record.place.length}"
    head = record.head
    if not head.count:
        return f"{head.index} session {record.body[-8:].decode(errors='replace')}"
    return f"{head.index} {' '.join(_entries(runner, [record]))}"


def _log(runner: "ScenarioRunner", node: str) -> tuple[Host, HostLog]:
    host = runner.world.hosts[runner.node(node)]
    if host.log is None:
        raise ValueError(f"{node} has no journal; write before the nodes: journal")
    return host, host.log


COMMANDS = {
    "journal": journal,
    "fsync": fsync,
    "append": append,
    "read": read,
    "call": call,
    "snapshot": snapshot,
    "disk": set_disk,
    "blackout": blackout,
    "recover": recover,
    "logs": print_logs,
}
