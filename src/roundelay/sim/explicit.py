"""Rewrites a run without chance: `load` becomes `submit` commands, losses become `fate` commands.

A fate can be written in two ways. By number, `fate a/37>b lost`, it belongs to one frame; if
something is removed from the run, another frame has that number. By type, `at 80ms fate a/TOKEN>b
lost`, it belongs to the next frame of that type after that time. Neither way survives every change
of a run, so the shrinker tries both. In an unchanged run both mean the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from roundelay.core.ids import Service
from roundelay.sim.command_text import LOOKING, Commands, at, due_ns, names, verb, without_at
from roundelay.sim.failure import Attempt
from roundelay.sim.intruder import ACT
from roundelay.sim.load import Submission


@dataclass(frozen=True, slots=True)
class ForcedFate:
    """What happened to one copy of a frame, with both of its names."""

    name: str
    """By number: `a/37>b`."""
    fate: str
    time_ns: int | None
    """A time before the frame was sent, but after the frame of its type that was sent before it;
    None if a command sent the frame while no time passed."""
    kind: str
    """By type: `a/DATA>b`."""
    skip: int
    """How many copies of this type were sent at the same time before it."""

    def numbered(self) -> str:
        # The apostrophe before an incarnation would begin a quotation.
        name = f'"{self.name}"' if "'" in self.name else self.name
        return f"fate {name} {self.fate}"

    def typed(self) -> str:
        skip = f" skip={self.skip}" if self.skip else ""
        return at(self.time_ns, f"fate {self.kind} {self.fate}{skip}")


def without_chance(run: Attempt) -> Commands:
    """The commands of a run with every random draw written out, except the fates of frames."""
    commands: list[str] = []
    for index, command in enumerate(run.commands):
        words = without_at(command).split()
        match words[0]:
            case "network":
                commands.append(" ".join(w for w in words if not w.startswith("jitter=")))
            case "nodes" if "down" not in words:
                listed = " ".join(names((command,)))
                commands += [f"nodes {listed} down", f"start {listed}"]
            case "load":
                commands += [_submit(submission) for submission in run.drawn.get(index, ())]
            case "restart" if "storage=torn" in words:
                commands.append(_torn(command, run))
            case "crash" if "power" in words:
                commands.append(_cut(command, run))
            case "blackout":
                nodes = names(run.commands)
                each = (at(due_ns(command), f"crash {node} power") for node in nodes)
                commands += [_cut(crash, run) for crash in each]
            case "intruder" if words[1:] != ["none"]:
                commands.append(_acts(command, run))
            case "seed" | "faults":
                pass
            case looking if looking in LOOKING:
                pass
            case _:
                commands.append(command)
    return tuple(commands)


def fates(run: Attempt) -> tuple[ForcedFate, ...]:
    """What happened to copies of frames that did not simply arrive; in order of time."""
    moments: dict[str, tuple[int, int, int]] = {}
    """By type: when the last copy was sent, how many at that time, and when the one before it."""
    found = []
    receivers = names(run.commands)
    for frame, sent in run.sent.items():
        for receiver in (sent.to,) if sent.to is not None else receivers:
            kind = f"{sent.sender}/{sent.tag}>{receiver}"
            last, count, before = moments.get(kind, (-1, 0, -1))
            if last != sent.time_ns:
                last, count, before = sent.time_ns, 0, last
            moments[kind] = (last, count + 1, before)
            name = f"{frame}>{receiver}"
            if name in run.made:
                time_ns = None if sent.at_once else _between(before, last)
                found.append(ForcedFate(name, run.made[name], time_ns, kind, count))
    return tuple(found)


def _between(after_ns: int, before_ns: int) -> int:
    """A round time after one moment and before another."""
    for unit in (1_000_000, 100_000, 10_000, 1_000):
        if (rounded := (before_ns - 1) // unit * unit) > after_ns:
            return rounded
    return before_ns - 1


def numbered(commands: Commands, forced: Iterable[ForcedFate]) -> Commands:
    """The scenario with these fates, each for one frame."""
    place = _after_nodes(commands)
    return (*commands[:place], *(fate.numbered() for fate in forced), *commands[place:])


def typed(commands: Commands, forced: Iterable[ForcedFate]) -> Commands:
    """The scenario with these fates, each for the next frame of its type."""
    place = _after_nodes(commands)
    start = place + (commands[place : place + 1] != () and verb(commands[place]) == "start")
    now = [fate.typed() for fate in forced if fate.time_ns is None]
    then = [fate.typed() for fate in forced if fate.time_ns is not None]
    return (*commands[:place], *now, *commands[place:start], *then, *commands[start:])


def _after_nodes(commands: Commands) -> int:
    return next(i for i, command in enumerate(commands, 1) if verb(command) == "nodes")


def _submit(submission: Submission) -> str:
    payload = submission.payload
    text = payload.rstrip(b"\0").decode()
    words = ["append" if submission.appended else "submit", submission.node, text]
    words += ["safe"] if submission.service is Service.SAFE and not submission.appended else []
    if submission.destinations is not None and not submission.appended:
        words.append(f"to={','.join(submission.destinations)}")
    words += [f"size={len(payload)}"] if len(payload) > len(text) else []
    return at(submission.time_ns, " ".join(words))


def _acts(command: str, run: Attempt) -> str:
    """The intruder, with the seed of its choices and the numbers of its acts."""
    options = command.split()
    if not any(option.startswith("seed=") for option in options):
        command += f" seed={run.runner.seed}"
    if not any(option.startswith("only=") for option in options):
        done = [name.removeprefix(ACT) for name in run.made if name.startswith(ACT)]
        command += f" only={','.join(done)}"
    return command


def _cut(command: str, run: Attempt) -> str:
    """The power cut, with what it left of the records that were not synced."""
    due, node = due_ns(command), without_at(command).split()[1]
    if "keep=" in command:
        return command
    for (time_ns, crashed), cut in run.power.items():
        if crashed == node and (due in (None, time_ns) or "after=" in command):
            torn = "" if cut.torn is None else f" {'garbled' if cut.garbled else 'torn'}={cut.torn}"
            return f"{command} keep={cut.keep}{torn}"
    return f"{command} keep=0"


def _torn(command: str, run: Attempt) -> str:
    """The restart, with the number of bytes that it found in its storage."""
    due, node = due_ns(command), without_at(command).split()[1]
    for (time_ns, restarted), left in run.torn.items():
        if restarted == node and due in (None, time_ns) and "bytes=" not in command:
            return f"{command} bytes={left}"
    return command
