"""Small questions about events that several properties ask."""

from roundelay.check.model import Event, Message, Model


def about(event: Event) -> Message:
    """The message of an event that is known to have one."""
    assert event.message is not None, f"a {event.kind} row without a message"
    return event.message


def sending(model: Model, event: Event) -> Event | None:
    """The originate that an event about a message goes back to.

    There is one, unless the message was withdrawn and sent again: then it is the one of the regular
    view the event happened in, or else the latest before it.
    """
    sent = model.originates.get(about(event), ())
    if len(sent) == 1:
        return sent[0]
    origins = model.origins(event)
    return next((o for o in origins if o.reg == event.reg), origins[0] if origins else None)


def addressed(model: Model, origin: Event) -> tuple[int, ...]:
    """Who is to deliver what was sent at `origin`."""
    return origin.row.dst if origin.row.dst is not None else model.group(origin.reg)


def owed_by(model: Model, event: Event) -> tuple[int, ...]:
    """Whose part a claim or a delivery speaks for: the members of the view it happened in, or
    those of them that its message is for."""
    origin = sending(model, event)
    members = model.group(event.cfg)
    if origin is not None and origin.row.dst is not None:
        return tuple(proc for proc in origin.row.dst if proc in members)
    return members


def ring(event: Event) -> tuple[int, int]:
    """The view in which an order key counts."""
    assert event.key is not None, f"a {event.kind} row without a key"
    return event.key[:2]
