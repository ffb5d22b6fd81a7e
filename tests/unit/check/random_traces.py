"""Small random runs, right and wrong, for properties to be compared with brute force."""

import random
from dataclasses import dataclass, field

NODES = "pqr"


@dataclass
class Run:
    """Writes a run down as it goes on, and knows enough not to write nonsense."""

    rng: random.Random
    kinds: frozenset[str]
    """What may occur: views, keys, confirmations of keys, destinations, withdrawals, crashes."""
    words: list[str] = field(default_factory=list)
    sent: dict[str, str] = field(default_factory=dict)
    """The sender of each message."""
    dst: dict[str, str] = field(default_factory=dict)
    delivered: dict[str, list[str]] = field(default_factory=lambda: {n: [] for n in NODES})
    view: dict[str, int] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)

    def text(self) -> str:
        if "views" in self.kinds:
            self.words += [f"{node}+V1{{{','.join(NODES)}}}" for node in NODES]
        self.view = dict.fromkeys(NODES, 1)
        for _ in range(self.rng.randint(4, 18)):
            self._act()
        return " ".join(self.words)

    def _act(self) -> None:
        rng = self.rng
        up = [node for node in NODES if node not in self.down]
        if not up:
            return
        node, chance = rng.choice(up), rng.random()
        if chance < 0.3 or not self.sent:
            self._send(node)
        elif chance < 0.38 and "views" in self.kinds:
            self._install(node)
        elif chance < 0.42 and "crashes" in self.kinds:
            self.words.append(f"{node}X")
            self.down.add(node)
        elif chance < 0.48 and "withdrawals" in self.kinds:
            self._send_again(node)
        else:
            self._deliver(node)

    def _send(self, node: str) -> None:
        name = "abcdefghijklmnopqrstuvwxyz"[len(self.sent)]
        dst = ""
        if "destinations" in self.kinds and self.rng.random() < 0.5:
            dst = f"{{{','.join(sorted(self.rng.sample(NODES, 2)))}}}"
        self.sent[name] = node
        self.dst[name] = dst
        self.words.append(f"{node}!{name}{dst}")

    def _install(self, node: str) -> None:
        self.view[node] += 1
        kind = "~T" if self.view[node] % 2 == 0 else "+V"
        self.words.append(f"{node}{kind}{self.view[node]}{{{','.join(NODES)}}}")

    def _send_again(self, node: str) -> None:
        own = [m for m, sender in self.sent.items() if sender == node]
        if own and all(own[-1] not in done for done in self.delivered.values()):
            self.words += [f"{node}-{own[-1]}", f"{node}!{own[-1]}{self.dst[own[-1]]}"]

    def _deliver(self, node: str) -> None:
        """Mostly the oldest, now and then another one, rarely the same one twice."""
        fresh = [m for m in self.sent if m not in self.delivered[node]]
        if self.rng.random() < 0.05 and self.delivered[node]:
            fresh = self.delivered[node]
        if not fresh:
            return
        name = fresh[0] if self.rng.random() < 0.6 else self.rng.choice(fresh)
        key = ""
        if "keys" in self.kinds:
            number = list(self.sent).index(name) + 1
            number += self.rng.random() < 0.03
            key = f"={number}"
            if "confirmations" in self.kinds:
                key = self._confirm(node, name, number)
        self.words.append(f"{node}.{name}{key}")
        self.delivered[node].append(name)

    def _confirm(self, node: str, name: str, number: int) -> str:
        """Confirm a number, mostly; now and then deliver without a key what is not confirmed."""
        if self.rng.random() < 0.1:
            return ""
        if self.rng.random() < 0.95:
            self.words.append(f"{node}${name}={number}")
        return f"={number}"


def traces(seed: int, count: int, kinds: str = "") -> list[str]:
    rng = random.Random(seed)
    return [Run(rng, frozenset(kinds.split())).text() for _ in range(count)]
