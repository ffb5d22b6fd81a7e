"""`roundelay node` with a broken Totem engine: `python broken.py FAULT FLAGS ...`.

FAULT is what the engine does with packets of other nodes: `twice` delivers each of them two times,
`swapped` delivers every second one before the one that it should follow.
"""

import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from roundelay.cli import main
from roundelay.core.effects import Deliver, Effect
from roundelay.protocols.totem import TotemEngine

Effects = list[Effect[Any]]


def twice(deliver: Deliver, held: Effects) -> Effects:
    return [deliver, deliver]


def swapped(deliver: Deliver, held: Effects) -> Effects:
    if not held:
        held.append(deliver)
        return []
    return [deliver, held.pop()]


FAULTS: dict[str, Callable[[Deliver, Effects], Effects]] = {"twice": twice, "swapped": swapped}


def broken(fault: Callable[[Deliver, Effects], Effects]) -> Callable[[TotemEngine], None]:
    right = TotemEngine._deliver
    held: Effects = []

    def wrong(engine: TotemEngine) -> None:
        out = engine._out
        before = len(out)
        right(engine)
        fresh = out[before:]
        del out[before:]
        for effect in fresh:
            if isinstance(effect, Deliver) and effect.packet.span.node != engine.node:
                out.extend(fault(effect, held))
            else:
                out.append(effect)

    return wrong


if __name__ == "__main__":
    with patch.object(TotemEngine, "_deliver", broken(FAULTS[sys.argv[1]])):
        sys.exit(main(["node", *sys.argv[2:]]))
