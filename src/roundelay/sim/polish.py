"""Making a scenario plainer: fewer options, rounder times, one line instead of several.

Every function takes commands and a question, whether these other commands show the same still, and
returns the plainest for which the answer was yes.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from roundelay.sim.commands import SETTING_UP, Commands, at, due_ns, later, length_ns, verb
from roundelay.sim.units import duration_ns, show_ns

Still = Callable[[Commands], bool]

MS = 1_000_000

MERGED_MIN = 2
"""Submissions alike that are worth a line with `times`."""


def flat(commands: Commands, still: Still) -> Commands:
    """One `run` instead of several, with what was done between them done by the clock."""
    head: list[str] = []
    tail: list[str] = []
    now = 0
    for command in commands:
        length = length_ns(command)
        if verb(command) == "end":
            tail.append(command)
        elif length:
            now += length
        else:
            late = now and due_ns(command) is None
            head.append(at(now, command) if late else command)
    runs = [f"run {show_ns(now)}"] if now else []
    return _better(commands, (*_sorted(head), *runs, *tail), still)


def started(commands: Commands, still: Still) -> Commands:
    """Nodes that start as they are made."""
    starts = [i for i, command in enumerate(commands) if verb(command) == "start"]
    if len(starts) != 1 or due_ns(commands[starts[0]]) is not None:
        return commands
    kept = [c for i, c in enumerate(commands) if i != starts[0]]
    return _better(commands, tuple(_undown(c) for c in kept), still)


def plain_setting(commands: Commands, still: Still) -> Commands:
    """No options but those that matter, on the simplest network."""
    for i, command in enumerate(commands):
        if verb(command) == "network" and "manual" not in command:
            latencies = [word for word in command.split() if word.startswith("latency=")]
            for options in ([], ["latency=1ms"], latencies):
                simpler = " ".join(["network lan", *options])
                if verb(commands[i]) == "network" and "lan" not in commands[i].split():
                    commands = _better(commands, _replaced(commands, i, simpler), still)
    for kind in SETTING_UP:
        i = next((i for i, c in enumerate(commands) if verb(c) == kind), -1)
        if i >= 0 and kind not in ("engine", "network"):
            commands = _better(commands, (*commands[:i], *commands[i + 1 :]), still)
    for kind in SETTING_UP:
        i = next((i for i, c in enumerate(commands) if verb(c) == kind), -1)
        options = [word for word in commands[i].split() if "=" in word] if i >= 0 else []
        for option in options:
            words = [word for word in commands[i].split() if word != option]
            if len(words) > 1:
                commands = _better(commands, _replaced(commands, i, " ".join(words)), still)
    return commands


def plain_lines(commands: Commands, still: Still) -> Commands:
    """Each line without what does not matter about it: first all lines at once, then one by one."""
    for pattern, plainer in _PLAINER:
        rewritten = tuple(re.sub(pattern, plainer, command) for command in commands)
        better = _better(commands, rewritten, still)
        if better == commands:
            for i in reversed(range(len(commands))):
                simpler = re.sub(pattern, plainer, commands[i])
                better = _better(better, _replaced(better, i, simpler), still)
        commands = better
    return commands


_PLAINER = (
    (r"^(.*\bsubmit .*) size=\d+", r"\1"),
    (r"^(.*\bsubmit .*) to=\S+", r"\1"),
    (r"^(.*\bsubmit .*) safe\b", r"\1"),
    (r"^(.*\bcrash \S+) after=\d+", r"\1"),
    (r"^(.*\brestart \S+) storage=\S+(?: bytes=\d+)?", r"\1"),
    (r"^(.*\bfate \S+ .*) skip=\d+", r"\1"),
    (r"^(.*\bfate \S+) (?:delay|copy|flip)=.*", r"\1 lost"),
    (r"^at \S+ (fate .*)", r"\1"),
    (r"^at 0s (.*)", r"\1"),
)


def named(commands: Commands, still: Still) -> Commands:
    """Messages with the texts m1, m2 and so on."""
    number = 0
    renamed: list[str] = []
    for command in commands:
        if verb(command) == "submit":
            number += 1
            command = re.sub(r"\b(submit \S+) \S+", rf"\1 m{number}", command)
        renamed.append(command)
    return _better(commands, tuple(renamed), still)


def merged(commands: Commands, still: Still) -> Commands:
    """One line for submissions that differ in time and text only; then as few of them as do."""
    groups: dict[str, list[int]] = {}
    for i, command in enumerate(commands):
        if verb(command) == "submit" and "times=" not in command:
            words = later(command).split()
            groups.setdefault(" ".join([words[1], *words[3:]]), []).append(i)
    for members in sorted(groups.values(), key=len, reverse=True):
        if len(members) < MERGED_MIN:
            continue
        one = f"{commands[members[0]]} times={len(members)}"
        gone = set(members[1:])
        kept = (one if i == members[0] else c for i, c in enumerate(commands) if i not in gone)
        better = _better(commands, tuple(kept), still)
        if better != commands:
            return merged(better, still)
    return commands


def fewer(commands: Commands, still: Still) -> Commands:
    """Smaller numbers behind `times=`."""
    for i, command in enumerate(commands):
        found = re.search(r" times=(\d+)", command)
        while found is not None:
            times = int(found[1])
            for less in dict.fromkeys((times // 2, times * 3 // 4, times - 1)):
                text = f" times={less}" if less > 1 else ""
                simpler = commands[i].replace(found[0], text)
                better = _better(commands, _replaced(commands, i, simpler), still)
                if less and better != commands:
                    commands = better
                    break
            else:
                break
            found = re.search(r" times=(\d+)", commands[i])
    return commands


def rounded(commands: Commands, still: Still) -> Commands:
    """Times and delays in whole milliseconds, or as round as may be."""
    for unit in (MS, MS // 10):
        better = _better(commands, tuple(_round(c, unit) for c in commands), still)
        if better != commands:
            return better
    for i, command in enumerate(commands):
        for unit in (MS, MS // 10):
            better = _better(commands, _replaced(commands, i, _round(command, unit)), still)
            if better != commands:
                commands = better
                break
    return commands


def together(commands: Commands, still: Still) -> Commands:
    """Less waiting between what is done."""
    runs = [i for i, command in enumerate(commands) if verb(command) == "run"]
    if len(runs) != 1:
        return commands
    if all(due_ns(command) is None for command in commands):
        commands = _better(commands, tuple(c for c in commands if verb(c) != "run"), still)
    for place in reversed(range(len(_moments(commands)))):
        moments = _moments(commands)
        if place >= len(moments):
            continue  # Two moments have become one.
        before = moments[place - 1] if place else 0
        gap = moments[place] - before
        for less in (MS, gap // 2 // MS * MS):
            if 0 < less < gap:
                sooner = _sooner(commands, moments[place], gap - less)
                better = _better(commands, sooner, still)
                if better != commands:
                    commands = better
                    break
    return commands


def _moments(commands: Commands) -> list[int]:
    """When something is done, and when the run is over."""
    times = {due for command in commands if (due := due_ns(command)) is not None}
    return [*sorted(times), sum(length_ns(c) for c in commands if verb(c) == "run")]


def _sooner(commands: Commands, since: int, by: int) -> Commands:
    """What is done from a moment on, and the end of the run, so much sooner."""
    out = []
    for command in commands:
        due = due_ns(command)
        if verb(command) == "run":
            command = f"run {show_ns(max(0, length_ns(command) - by))}"
        elif due is not None and due >= since:
            command = at(due - by, later(command))
        out.append(command)
    return tuple(out)


def _round(command: str, unit: int) -> str:
    """The command with its time rounded down, a run's length and a frame's delay up."""
    due = due_ns(command)
    if verb(command) == "fate":
        command = re.sub(r"(?<=delay=|.copy=)\S+", lambda m: _up(duration_ns(m[0]), unit), command)
    if verb(command) == "run":
        return f"run {_up(length_ns(command), unit)}"
    if verb(command) == "end":
        return f"end after={show_ns(length_ns(command))}"
    return command if due is None else at(due // unit * unit, later(command))


def _up(time_ns: int, unit: int) -> str:
    return show_ns(-(-time_ns // unit) * unit)


def _sorted(commands: Iterable[str]) -> Iterator[str]:
    """What is done at once as it stands; then what is done later, in order of time."""
    listed = list(commands)
    yield from (command for command in listed if due_ns(command) is None)
    yield from sorted((c for c in listed if due_ns(c) is not None), key=lambda c: due_ns(c) or 0)


def _undown(command: str) -> str:
    return command.removesuffix(" down") if verb(command) == "nodes" else command


def _replaced(commands: Commands, i: int, command: str) -> Commands:
    return (*commands[:i], command, *commands[i + 1 :])


def _better(commands: Commands, plainer: Commands, still: Still) -> Commands:
    return plainer if plainer != commands and still(plainer) else commands
