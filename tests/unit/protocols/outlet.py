"""The group layer, as the tests of engines need it."""

from roundelay.core.ids import Packet


class Queue:
    """An Outlet: packets that wait, put there by hand."""

    def __init__(self, *, traced: bool = True) -> None:
        self.traced = traced
        self.packets: list[Packet] = []

    @property
    def waiting(self) -> int:
        return len(self.packets)

    def pull(self) -> Packet | None:
        return self.packets.pop(0) if self.packets else None
