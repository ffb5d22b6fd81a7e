"""A bug in the order that ST makes in a recovery. Import this module to register it."""

from roundelay.protocols.st.lists import Listed
from roundelay.protocols.st.recovery import Recovery

from .planted import Patch, bug


@bug("What a member missed goes behind what it has, instead of where it was on the channel.")
def st_appends_on_arrival() -> list[Patch]:
    def left(self: Recovery) -> list[Listed]:
        places = {item.name: place for place, item in enumerate(self.list.listed)}
        return sorted(original(self), key=lambda item: places.get(item.name, len(places)))

    original = Recovery.left
    return [(Recovery, "left", left)]
