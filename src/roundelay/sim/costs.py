"""What processors of simulated machines take their time for."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor time a host spends; all zero means infinitely fast."""

    send_ns: int = 0
    receive_ns: int = 0
    byte_ns: float = 0.0
    """Per byte sent or received, on top."""
    tag_ns: dict[str, int] = field(default_factory=dict)
    """Receiving a frame of this type costs this instead of `receive_ns`: a token, say."""
    send_tag_ns: dict[str, int] = field(default_factory=dict)
    """Sending a frame of this type costs this instead of `send_ns`."""

    def __bool__(self) -> bool:
        costs = (self.send_ns, self.receive_ns, self.byte_ns, self.tag_ns, self.send_tag_ns)
        return any(costs)

    def sending(self, tag: str, size: int) -> int:
        return self.send_tag_ns.get(tag, self.send_ns) + round(self.byte_ns * size)

    def receiving(self, tag: str, size: int) -> int:
        return self.tag_ns.get(tag, self.receive_ns) + round(self.byte_ns * size)
