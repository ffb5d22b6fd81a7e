"""A scenario that is being drawn from a seed: what mishaps add their commands to."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

MS = 1_000_000
"""A millisecond, in nanoseconds."""


@dataclass(slots=True)
class ScenarioDraft:
    """The commands of a scenario, drawn so far."""

    random: Random
    nodes: list[str]
    carriers: tuple[str, ...]
    """Names of the frames that tell packets and their order."""
    rotation_ns: int
    """About how long a frame takes to go round all nodes."""
    events: list[tuple[int, str]] = field(default_factory=list)
    """Commands, each with its time in nanoseconds."""

    keeper: str = ""
    """In a group with journals: the node that never loses its disk. If all that ever opened a log
    lose theirs, the founders found another one, as they must."""
    few_sessions: bool = False
    """The log remembers so few sessions that some are forgotten: clients open theirs once, and give
    up when they cannot go on with it."""
    numbers: dict[str, int] = field(default_factory=dict)
    """By client: the number of its next message."""

    def at(self, time_ns: int, command: str) -> None:
        self.events.append((time_ns, command))

    def restart(self, time_ns: int, node: str) -> None:
        storage = self.random.choice(("kept", "kept", "kept", "lost", "torn"))
        storage = "kept" if node == self.keeper else storage
        self.at(time_ns, f"restart {node} storage={storage}")

    def return_(self, time_ns: int, nodes: list[str], gap_ns: int) -> None:
        """Restart these, one after the other. None of them, one, half or all come without what they
        had stored, before the others or among them."""
        random = self.random
        bare = random.choice((0, 1, 1, (len(nodes) + 1) // 2, len(nodes)))
        storages = [random.choice(("lost", "lost", "torn")) for _ in range(bare)]
        storages += ["kept"] * (len(nodes) - bare)
        if random.random() < 0.5:
            random.shuffle(storages)
        for i, (node, storage) in enumerate(zip(nodes, storages, strict=True)):
            storage = "kept" if node == self.keeper else storage
            self.at(time_ns + i * gap_ns, f"restart {node} storage={storage}")

    def carrier(self) -> str:
        """The name of frames to be lost."""
        return self.random.choice(self.carriers) if len(self.carriers) > 1 else self.carriers[0]

    def service(self) -> str:
        return self.random.choice(("", " safe"))


Mishap = Callable[[ScenarioDraft, int, int], None]
"""Adds one mishap to a draft. The numbers are when it begins and about when it ends, in
nanoseconds; its docstring is one line for people."""
