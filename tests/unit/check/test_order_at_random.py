"""O: the quick checks say what brute force says, on thousands of small random runs."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from roundelay.check import PROPERTIES, Model, Validity, read_model
from roundelay.check.events import addressed, sending
from roundelay.check.keys import certified
from roundelay.check.model import Event
from roundelay.check.order import by_ring
from roundelay.core.effects import Kind
from roundelay.trace import mini

from .random_traces import traces
from .test_acyclicity import closure

Judged = tuple[int, bool]
"""How often the premise occurred, as far as zero or not matters, and whether it was breached."""


def validity(judged: Judged) -> Validity:
    premises, breached = judged
    if breached:
        return Validity.VIOLATED
    return Validity.OK if premises else Validity.VACUOUS


def compare(name: str, oracle: Callable[[Model], Judged], texts: Iterable[str]) -> Counter[str]:
    """Judge every trace both ways; the verdicts that occurred."""
    seen: Counter[str] = Counter()
    for text in texts:
        manifest, rows = mini.parse(text)
        expected = validity(oracle(read_model(rows, manifest)))
        for gseq in (True, False):
            if not gseq:
                rows = [row._replace(gseq=None) for row in rows]
            model = read_model(rows, manifest)
            if gseq or not model.withdraws:
                verdict = PROPERTIES[name].verdict_on(model)
                assert verdict.validity is expected, (gseq, text, verdict.reason)
        seen[expected] += 1
    return seen


def life(event: Event) -> tuple[int, int]:
    return event.proc, event.row.inc


Before = set[tuple[Event, Event]]
"""Pairs of sendings, the cause first."""


def causes(model: Model, *, origin: Callable[[Event], Event | None], scoped: bool) -> Before:
    """What was sent because of what, in any number of steps."""
    sent = [e for e in model.events if e.kind == Kind.ORIGINATE]
    before: Before = set()
    for effect in sent:
        for event in model.by_proc[effect.proc]:
            if event is effect:
                break
            if life(event) != life(effect) or event.kind not in (Kind.ORIGINATE, Kind.DELIVER):
                continue
            cause = event if event.kind == Kind.ORIGINATE else origin(event)
            if cause is not None and (not scoped or cause.reg == effect.reg):
                before.add((cause, effect))
    for middle, a, b in itertools.product(sent, repeat=3):
        if (a, middle) in before and (middle, b) in before:
            before.add((a, b))
    return before


def causal(model: Model) -> Judged:
    def origin(event: Event) -> Event | None:
        assert event.message is not None
        return model.originate(event.message)

    before = causes(model, origin=origin, scoped=False)
    premises = breaches = 0
    for history in model.histories.values():
        for one, then in itertools.combinations(history, 2):
            if life(one) == life(then):
                premises += (origin(one), origin(then)) in before
                breaches += (origin(then), origin(one)) in before
    return premises + breaches, bool(breaches)


def reliable_causal(model: Model) -> Judged:
    before = causes(model, origin=lambda e: sending(model, e), scoped=True)
    premises = breaches = 0
    for proc, history in model.histories.items():
        done: set[Event | None] = set()
        for event in history:
            for cause, effect in before:
                if effect is not sending(model, event) or model.withdrawn(cause):
                    continue
                if proc in addressed(model, cause):
                    premises += 1
                    breaches += cause not in done
            done.add(sending(model, event))
    return premises, bool(breaches)


def reliable_fifo(model: Model) -> Judged:
    premises = breaches = 0
    for proc, history in model.histories.items():
        done: set[Event | None] = set()
        for event in history:
            origin = sending(model, event)
            assert origin is not None
            for other in model.by_kind[Kind.ORIGINATE]:
                if life(other) != life(origin) or other.reg != origin.reg or other.at >= origin.at:
                    continue
                if proc in addressed(model, other) and not model.withdrawn(other):
                    premises += 1
                    breaches += other not in done
            done.add(origin)
    return premises, bool(breaches)


def delivered_in(model: Model) -> dict[object, dict[int, list[Event]]]:
    places: dict[object, dict[int, list[Event]]] = {}
    for proc, history in model.histories.items():
        for event in history:
            places.setdefault(event.cfg, {}).setdefault(proc, []).append(event)
    return places


def agreed(model: Model) -> Judged:
    premises = breaches = 0
    for histories in delivered_in(model).values():
        for one, other in itertools.combinations(histories.values(), 2):
            for a, b in zip(one, other, strict=False):
                premises += 1
                breaches += a.message != b.message
    return premises, bool(breaches)


def uncontaminated(model: Model) -> Judged:
    premises = breaches = 0
    for config, histories in delivered_in(model).items():
        for event in (event for history in histories.values() for event in history):
            origin = sending(model, event)
            assert origin is not None
            if event.proc == origin.proc or event.proc in model.crashed or origin.cfg != config:
                continue
            if event.cfg is None or not event.cfg.regular:
                continue
            past = [e.message for e in histories.get(origin.proc, []) if e.at < origin.at]
            own = [e.message for e in histories[event.proc] if e.at < event.at]
            premises += bool(past)
            breaches += own[: len(past)] != past
    return premises, bool(breaches)


def total(model: Model) -> Judged:
    lines = [[str(event.message) for event in line] for line in model.histories.values()]
    times = Counter(item for line in lines for item in line)
    shared = sum(1 for n in times.values() if n > 1)
    return shared if shared > 1 else 0, any(a == b for a, b in closure(lines))


COMPARED = [
    ("O2", causal, ""),
    ("O2", causal, "views crashes"),
    ("O2", causal, "views withdrawals"),
    ("O2r", reliable_causal, ""),
    ("O2r", reliable_causal, "views destinations"),
    ("O2r", reliable_causal, "views withdrawals"),
    ("O1r", reliable_fifo, "views destinations"),
    ("O1r", reliable_fifo, "views withdrawals"),
    ("O6", agreed, "crashes"),
    ("O6", agreed, "views"),
    ("O11", uncontaminated, "crashes"),
    ("O11", uncontaminated, "views withdrawals"),
    ("O5", total, ""),
    ("O5", total, "views"),
    ("O5", total, "keys"),
]


@pytest.mark.parametrize(("name", "oracle", "kinds"), COMPARED)
def test_a_property_agrees_with_brute_force(
    name: str, oracle: Callable[[Model], Judged], kinds: str
):
    seen = compare(name, oracle, traces(1995, 400, kinds))
    assert min(seen[v] for v in ("ok", "violated", "vacuous")) >= 10, seen


def test_what_keys_and_beginnings_prove_is_true():
    """A key certificate and a gap-free order each exclude circles."""
    by_keys = by_prefix = 0
    for text in traces(4, 1500, "keys") + traces(5, 1500):
        manifest, rows = mini.parse(text)
        model = read_model(rows, manifest)
        premises, circles = total(model)
        if certified(model):
            by_keys += premises > 0
            assert not circles, text
        if not agreed(model)[1]:
            by_prefix += premises > 0
            assert not circles, text
    assert min(by_keys, by_prefix) >= 50, (by_keys, by_prefix)


def test_searching_view_by_view_hides_no_circle():
    first, second = traces(6, 500), traces(7, 500)
    texts = []
    for one, other in zip(first, second, strict=True):
        later = re.sub(r"([!.])(\w)", r"\1x\2", other)
        texts.append(f"{everybody(1)} {one} {everybody(2)} {later}")
    cut = 0
    for text in texts:
        manifest, rows = mini.parse(text)
        cut += len(by_ring(read_model(rows, manifest))) == 2
    assert cut > 400
    assert compare("O5", total, texts)["violated"] > 100


def everybody(number: int) -> str:
    return " ".join(f"{node}+V{number}{{p,q,r}}" for node in "pqr")
