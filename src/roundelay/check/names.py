"""How reports call nodes, messages, views and order keys. Both checkers speak through this."""

from collections.abc import Iterable, Mapping, Sequence

from roundelay.core.ids import life_mark
from roundelay.trace.schema import REGULAR, WORLD

Span = tuple[int, int, int, int]
"""Consecutive messages of one sender: node, incarnation, number of the first, how many."""


class Names:
    """The names of one run."""

    def __init__(self, nodes: Sequence[str], written: Mapping[str, object] | None = None) -> None:
        """`nodes` are names of nodes by number. `written` are names of messages, by sender,
        incarnation and number, that a trace in the mini-language gave them."""
        self._nodes = nodes
        self._written = written

    def node(self, proc: int) -> str:
        """A process as the user called it."""
        if proc == WORLD:
            return "the world"
        return self._nodes[proc] if 0 <= proc < len(self._nodes) else f"#{proc}"

    def nodes(self, procs: Iterable[int]) -> str:
        return ",".join(map(self.node, procs))

    def messages(self, span: Span) -> str:
        """Messages as diagrams show them: sender, incarnation if not the first, numbers."""
        src, inc, first, count = span
        if name := (self._written or {}).get(f"{src}.{inc}.{first}"):
            return f"{name} and the {count - 1} after it" if count > 1 else str(name)
        last = f"..{first + count - 1}" if count > 1 else ""
        return f"{self.node(src)}{life_mark(inc)}:{first}{last}"

    def view(self, seq: int, rep: int, kind: int) -> str:
        # A trace in the mini-language names views by their number alone.
        by = "" if self._written is not None else f".{self.node(rep)}"
        return f"{'R' if kind == REGULAR else 'T'}{seq}{by}"

    def view_of(self, seq: int, rep: int, kind: int, members: Iterable[int]) -> str:
        """A view and its members."""
        return f"{self.view(seq, rep, kind)}{{{self.nodes(members)}}}"


def key_within_view(key: tuple[int, ...]) -> str:
    """An order key without its view, and without an index in the packet that is 0."""
    return f"{key[2]}.{key[3]}" if key[3] else str(key[2])
