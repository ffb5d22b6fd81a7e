"""Makes a failing scenario easier to read: fewer options, rounder times, fewer lines.

Every function takes the commands of a scenario and `still_fails`, which runs other commands and
says whether they fail alike. It returns the simplest commands for which the answer was yes.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from roundelay.sim.command_text import SETTING_UP, Commands, at, due_ns, length_ns, verb, without_at
from roundelay.sim.ddmin import ddmin
from roundelay.sim.units import duration_ns, show_ns

StillFails = Callable[[Commands], bool]

MS = 1_000_000

ACTS_TRIES = 100
"""How many attempts are made to leave out acts of an intruder. More: the other simplifications have
fewer left."""

MERGED_SUBMISSIONS_MIN = 2
"""How many equal submissions become one line with `times=`; fewer stay as they are."""


def merge_runs(commands: Commands, still_fails: StillFails) -> Commands:
    """Merge all `run` commands into one; a command between two of them becomes an `at` command."""
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
    return _if_still_failing(commands, (*_sorted(head), *runs, *tail), still_fails)


def start_with_nodes(commands: Commands, still_fails: StillFails) -> Commands:
    """Let `nodes` start the nodes, instead of a `start` command after it."""
    starts = [i for i, command in enumerate(commands) if verb(command) == "start"]
    if len(starts) != 1 or due_ns(commands[starts[0]]) is not None:
        return commands
    kept = [c for i, c in enumerate(commands) if i != starts[0]]
    return _if_still_failing(commands, tuple(_without_down(c) for c in kept), still_fails)


def drop_options(commands: Commands, still_fails: StillFails) -> Commands:
    """Drop options without which the run still fails, and try the simplest network."""
    for i, command in enumerate(commands):
        if verb(command) == "network" and "manual" not in command:
            latencies = [word for word in command.split() if word.startswith("latency=")]
            for options in ([], ["latency=1ms"], latencies):
                simpler = " ".join(["network lan", *options])
                if verb(commands[i]) == "network" and "lan" not in commands[i].split():
                    commands = _if_still_failing(
                        commands, _replaced(commands, i, simpler), still_fails
                    )
    for kind in SETTING_UP:
        i = next((i for i, c in enumerate(commands) if verb(c) == kind), -1)
        if i >= 0 and kind not in ("engine", "network"):
            commands = _if_still_failing(commands, (*commands[:i], *commands[i + 1 :]), still_fails)
    for kind in SETTING_UP:
        i = next((i for i, c in enumerate(commands) if verb(c) == kind), -1)
        options = [word for word in commands[i].split() if "=" in word] if i >= 0 else []
        for option in options:
            words = [word for word in commands[i].split() if word != option]
            if len(words) > 1:
                commands = _if_still_failing(
                    commands, _replaced(commands, i, " ".join(words)), still_fails
                )
    return commands


def simplify_lines(commands: Commands, still_fails: StillFails) -> Commands:
    """Drop parts of lines without which the run still fails, from all lines at once or else one by
    one."""
    for pattern, plainer in _PLAINER:
        rewritten = tuple(re.sub(pattern, plainer, command) for command in commands)
        better = _if_still_failing(commands, rewritten, still_fails)
        if better == commands:
            for i in reversed(range(len(commands))):
                simpler = re.sub(pattern, plainer, commands[i])
                better = _if_still_failing(better, _replaced(better, i, simpler), still_fails)
        commands = better
    return commands


_PLAINER = (
    (r"^(.*\bsubmit .*) size=\d+", r"\1"),
    (r"^(.*\bsubmit .*) to=\S+", r"\1"),
    (r"^(.*\bsubmit .*) safe\b", r"\1"),
    (r"^(.*\bappend .*) size=\d+", r"\1"),
    (r"^(.*\bappend .*) number=\d+", r"\1"),
    (r"^(.*\bappend \S+ \S+) session=\S+", r"\1"),
    (r"^(.*\bcrash \S+) after=\d+", r"\1"),
    (r"^(.*\bcrash .* power keep=\d+) (?:torn|garbled)=\d+", r"\1"),
    (r"^(.*\bcrash .* power) keep=[1-9]\d*", r"\1 keep=0"),
    (r"^(.*\bcrash \S+) power.*", r"\1"),
    (r"^(.*\brestart \S+) storage=\S+(?: bytes=\d+)?", r"\1"),
    (r"^(.*\bfate \S+ .*) skip=\d+", r"\1"),
    (r"^(.*\bfate \S+) (?:delay|copy|flip)=.*", r"\1 lost"),
    (r"^at \S+ (fate .*)", r"\1"),
    (r"^at 0s (.*)", r"\1"),
)


def drop_acts(commands: Commands, still_fails: StillFails) -> Commands:
    """Leave out acts of an intruder, in ever smaller ranges."""
    best = commands
    for i, command in enumerate(commands):
        found = re.search(_ONLY, command)
        if verb(command) != "intruder" or found is None:
            continue

        def without_others(rest: list[str], i: int = i) -> list[str] | None:
            nonlocal best
            fewer = re.sub(_ONLY, f" only={','.join(rest)}", best[i])
            better = _if_still_failing(best, _replaced(best, i, fewer), still_fails)
            if better == best:
                return None
            best = better
            return rest

        ddmin(found[1].split(","), without_others, ACTS_TRIES)
    return best


_ONLY = r" only=(\S*)"


def name_messages(commands: Commands, still_fails: StillFails) -> Commands:
    """Call the messages m1, m2 and so on."""
    number = 0
    renamed: list[str] = []
    for command in commands:
        if verb(command) in ("submit", "append"):
            number += 1
            command = re.sub(r"\b((?:submit|append) \S+) \S+", rf"\1 m{number}", command)
        renamed.append(command)
    return _if_still_failing(commands, tuple(renamed), still_fails)


def merge_submissions(commands: Commands, still_fails: StillFails) -> Commands:
    """Merge submissions that differ only in time and text into one line with `times=`."""
    groups: dict[str, list[int]] = {}
    for i, command in enumerate(commands):
        if verb(command) in ("submit", "append") and "times=" not in command:
            words = without_at(command).split()
            groups.setdefault(" ".join([*words[:2], *words[3:]]), []).append(i)
    for members in sorted(groups.values(), key=len, reverse=True):
        if len(members) < MERGED_SUBMISSIONS_MIN:
            continue
        one = f"{commands[members[0]]} times={len(members)}"
        gone = set(members[1:])
        kept = (one if i == members[0] else c for i, c in enumerate(commands) if i not in gone)
        better = _if_still_failing(commands, tuple(kept), still_fails)
        if better != commands:
            return merge_submissions(better, still_fails)
    return commands


def lower_times(commands: Commands, still_fails: StillFails) -> Commands:
    """Try smaller numbers behind `times=`."""
    for i, command in enumerate(commands):
        found = re.search(r" times=(\d+)", command)
        while found is not None:
            times = int(found[1])
            for less in dict.fromkeys((times // 2, times * 3 // 4, times - 1)):
                text = f" times={less}" if less > 1 else ""
                simpler = commands[i].replace(found[0], text)
                better = _if_still_failing(commands, _replaced(commands, i, simpler), still_fails)
                if less and better != commands:
                    commands = better
                    break
            else:
                break
            found = re.search(r" times=(\d+)", commands[i])
    return commands


def round_times(commands: Commands, still_fails: StillFails) -> Commands:
    """Round times and delays to milliseconds, or else to tenths of a millisecond."""
    for unit in (MS, MS // 10):
        better = _if_still_failing(commands, tuple(_round(c, unit) for c in commands), still_fails)
        if better != commands:
            return better
    for i, command in enumerate(commands):
        for unit in (MS, MS // 10):
            better = _if_still_failing(
                commands, _replaced(commands, i, _round(command, unit)), still_fails
            )
            if better != commands:
                commands = better
                break
    return commands


def shorten_waits(commands: Commands, still_fails: StillFails) -> Commands:
    """Shorten the time between two commands."""
    runs = [i for i, command in enumerate(commands) if verb(command) == "run"]
    if len(runs) != 1:
        return commands
    if all(due_ns(command) is None for command in commands):
        commands = _if_still_failing(
            commands, tuple(c for c in commands if verb(c) != "run"), still_fails
        )
    for place in reversed(range(len(_moments(commands)))):
        moments = _moments(commands)
        if place >= len(moments):
            continue  # Two moments have become one.
        before = moments[place - 1] if place else 0
        gap = moments[place] - before
        for less in (MS, gap // 2 // MS * MS):
            if 0 < less < gap:
                sooner = _moved_forward(commands, moments[place], gap - less)
                better = _if_still_failing(commands, sooner, still_fails)
                if better != commands:
                    commands = better
                    break
    return commands


def _moments(commands: Commands) -> list[int]:
    """The times of all `at` commands, then the time at which the `run` ends."""
    times = {due for command in commands if (due := due_ns(command)) is not None}
    return [*sorted(times), sum(length_ns(c) for c in commands if verb(c) == "run")]


def _moved_forward(commands: Commands, since: int, by: int) -> Commands:
    """Move `at` commands that are due at `since` or later, and the end of the run, forward by
    `by` nanoseconds."""
    out = []
    for command in commands:
        due = due_ns(command)
        if verb(command) == "run":
            command = f"run {show_ns(max(0, length_ns(command) - by))}"
        elif due is not None and due >= since:
            command = at(due - by, without_at(command))
        out.append(command)
    return tuple(out)


def _round(command: str, unit: int) -> str:
    """Round the time of a command down; round the length of a run and the delay of a frame up."""
    due = due_ns(command)
    if verb(command) == "fate":
        command = re.sub(
            r"(?<=delay=|.copy=)\S+", lambda m: _rounded_up(duration_ns(m[0]), unit), command
        )
    if verb(command) == "run":
        return f"run {_rounded_up(length_ns(command), unit)}"
    if verb(command) == "end":
        return f"end after={show_ns(length_ns(command))}"
    return command if due is None else at(due // unit * unit, without_at(command))


def _rounded_up(time_ns: int, unit: int) -> str:
    return show_ns(-(-time_ns // unit) * unit)


def _sorted(commands: Iterable[str]) -> Iterator[str]:
    """Commands without a time first, in their order; then `at` commands, in order of time."""
    listed = list(commands)
    yield from (command for command in listed if due_ns(command) is None)
    yield from sorted((c for c in listed if due_ns(c) is not None), key=lambda c: due_ns(c) or 0)


def _without_down(command: str) -> str:
    return command.removesuffix(" down") if verb(command) == "nodes" else command


def _replaced(commands: Commands, i: int, command: str) -> Commands:
    return (*commands[:i], command, *commands[i + 1 :])


def _if_still_failing(commands: Commands, plainer: Commands, still_fails: StillFails) -> Commands:
    return plainer if plainer != commands and still_fails(plainer) else commands
