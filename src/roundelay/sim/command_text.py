"""Takes the commands of a scenario apart, as text, and puts them together again."""

from roundelay.core.ids import NodeId
from roundelay.sim.units import duration_ns, show_ns

LOOKING = ("check", "held", "log", "logs", "show", "state", "stats", "timers")
"""Verbs of commands that change nothing in the run."""

SETTING_UP = (
    "engine",
    "membership",
    "group",
    "network",
    "costs",
    "turn",
    "seal",
    "journal",
    "fsync",
)
"""Verbs of commands that come before `nodes` and may be left out, as may their options."""

Commands = tuple[str, ...]


def verb(command: str) -> str:
    """The verb of a command, or of the command behind its `at`."""
    return without_at(command).split(None, 1)[0]


def due_ns(command: str) -> int | None:
    """The time of a command that begins with `at`; None for any other."""
    words = command.split(None, 2)
    return duration_ns(words[1]) if words[0] == "at" else None


def without_at(command: str) -> str:
    """The command without its `at`."""
    return command.split(None, 2)[2] if command.startswith("at ") else command


def at(time_ns: int | None, command: str) -> str:
    """The command with `at` before it, unless `time_ns` is None."""
    return command if time_ns is None else f"at {show_ns(time_ns)} {command}"


def length_ns(command: str) -> int:
    """How much virtual time passes while a command runs."""
    words = command.split()
    if words[0] == "run":
        return duration_ns(words[1])
    if words[0] == "end":
        return duration_ns(words[1].removeprefix("after=") if len(words) > 1 else "1s")
    return 0


def names(commands: Commands) -> tuple[NodeId, ...]:
    """The nodes that a scenario creates."""
    for command in commands:
        words = command.split()
        if words[0] == "nodes":
            listed = tuple(word for word in words[1:] if word != "down")
            if len(listed) == 1 and listed[0].isdecimal():
                return tuple(chr(ord("a") + i) for i in range(int(listed[0])))
            return listed
    return ()


def truncated(commands: Commands, end_ns: int) -> Commands:
    """The commands up to the time `end_ns`; the last one ends at that time."""
    kept: list[str] = []
    now = 0
    for command in commands:
        due, length = due_ns(command), length_ns(command)
        if due is not None and due > end_ns:
            continue
        if length and now + length >= end_ns:
            kept += ["heal"] if verb(command) == "end" else []
            kept.append(f"run {show_ns(end_ns - now)}")
            break
        kept.append(command)
        now += length
    return tuple(kept)


def without_node(commands: Commands, gone: NodeId) -> Commands:
    """The scenario without a node and without what its commands did to that node."""
    kept: list[str] = []
    for command in commands:
        words = without_at(command).split()
        match words[0]:
            case "nodes":
                words = ["nodes", *(n for n in names((command,)) if n != gone)]
                words += ["down"] if "down" in command.split() else []
            case "start":
                words = [word for word in words if word != gone]
            case "fate":
                sender, _, receiver = words[1].strip('"').partition(">")
                if gone in (receiver, sender.partition("/")[0].partition("'")[0]):
                    continue
            case "cut":
                words = [word for word in words if gone not in word.split(">")]
            case "partition":
                sides = [[n for n in side.split(",") if n != gone] for side in words[1:]]
                words = [words[0], *(",".join(side) for side in sides if side)]
            case "submit" | "append" | "load" | "lose":
                if words[0] in ("submit", "append") and words[1] == gone:
                    continue
                words = [_without_listed(word, gone) for word in words]
                if any(word in ("to=", "from=") for word in words):
                    continue
            case _:
                if gone in words[1:]:
                    continue
        if len(words) > 1 or without_at(command).split() == words:
            kept.append(at(due_ns(command), " ".join(words)))
    return tuple(kept)


def _without_listed(word: str, gone: NodeId) -> str:
    """`to=a,b` without a node."""
    option, equals, listed = word.partition("=")
    if not equals or option not in ("to", "from"):
        return word
    return f"{option}={','.join(node for node in listed.split(',') if node != gone)}"
