"""One case of an audit of ST, in the simulator, and what is wrong with the order then."""

from collections.abc import Iterator

from roundelay.core.effects import Kind
from roundelay.core.value import value
from roundelay.experiments.audit_st.cases import Case
from roundelay.experiments.audit_st.orders import disagree, reverse, run_in_circles
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import Block

STEP = "20ms"
STEPS_MAX = 25
"""A run ends when everything is delivered, or after so many steps: longer than several recoveries
take, one after the other, with all time-outs of the paper."""


@value
class Outcome:
    """What came of a case."""

    pairwise: bool
    """Two members deliver two messages in different orders."""
    cyclic: bool
    """No order of all messages agrees with that of each member."""
    source: bool
    """A member delivers messages of one sender in another order than it sent them."""
    causal: bool
    """A member delivers a message before one that its sender had heard when it sent it."""
    unfinished: bool
    """A member that a message is for has not delivered it."""

    @property
    def wrong(self) -> bool:
        """Whether members have no common order."""
        return self.pairwise or self.cyclic


class _Runner(ScenarioRunner):
    frame_rows = False


def play(case: Case, rules: str) -> Outcome:
    """Play a case under these rules."""
    runner = _Runner()
    _do(runner, *setup(case, rules), *happenings(case))
    owed = sum(len(sent.to) for sent in case.messages)
    for _ in range(STEPS_MAX):
        _do(runner, f"run {STEP}")
        if sum(map(len, runner.log.values())) >= owed:
            break
    logs = [[_number(text) for text in runner.log[node]] for node in nodes(case)]
    expected = [
        {number for number, sent in enumerate(case.messages) if member in sent.to}
        for member in range(case.size)
    ]
    return Outcome(
        disagree(logs),
        run_in_circles(logs),
        reverse(logs, _of_one_sender(case)),
        reverse(logs, _heard_before(runner, case)),
        [set(log) for log in logs] != expected,
    )


def _do(runner: ScenarioRunner, *commands: str) -> None:
    runner.play(Block(1, tuple(enumerate(commands, 1)), ""))


def nodes(case: Case) -> list[str]:
    width = len(str(case.size))
    return [f"{place:0{width}}" for place in range(1, case.size + 1)]


def label(number: int) -> str:
    """The text of a message."""
    return f"m{number + 1}"


def _number(text: str) -> int:
    return int(text[1:]) - 1


def setup(case: Case, rules: str) -> Iterator[str]:
    """The first commands of the scenario."""
    yield f"engine st static rules={rules} medium=channel"
    yield "group packet_messages=1"
    yield "network channel"
    yield "show suspects"
    yield f"nodes {' '.join(nodes(case))}"


def happenings(case: Case) -> Iterator[str]:
    """What is lost, and what is sent."""
    names = nodes(case)
    sent_before = [0] * case.size
    for sent in case.messages:
        skip = f" skip={sent_before[sent.source]}" if sent_before[sent.source] else ""
        for member in sent.missed:
            yield f"fate {names[sent.source]}/DT>{names[member]} lost{skip}"
        sent_before[sent.source] += 1
    for number, sent in enumerate(case.messages):
        to = ",".join(names[member] for member in sent.to)
        yield f"at {sent.at_us}us submit {names[sent.source]} {label(number)} to={to}"


def _of_one_sender(case: Case) -> Iterator[tuple[int, int]]:
    last: dict[int, list[int]] = {}
    for number, sent in enumerate(case.messages):
        earlier = last.setdefault(sent.source, [])
        yield from ((first, number) for first in earlier)
        earlier.append(number)


def _heard_before(runner: ScenarioRunner, case: Case) -> Iterator[tuple[int, int]]:
    """Pairs of a message and one that its sender sent later: it was for that sender, who had heard
    it."""
    numbers: dict[tuple[int, int], int] = {}
    counts = [0] * case.size
    for number, sent in enumerate(case.messages):
        numbers[sent.source, counts[sent.source]] = number
        counts[sent.source] += 1
    heard: list[set[int]] = [set() for _ in range(case.size)]
    for row in runner.rows:
        if row.kind not in (Kind.RECEIVE, Kind.ORIGINATE) or row.m_src is None or row.m_seq is None:
            continue
        number = numbers[row.m_src, row.m_seq]
        if row.kind == Kind.ORIGINATE:
            yield from ((first, number) for first in heard[row.proc])
        elif row.proc in case.messages[number].to:
            heard[row.proc].add(number)
