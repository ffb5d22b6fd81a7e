"""What `roundelay status` shows, as one document."""

from typing import Any

from roundelay.runtime.node import Node
from roundelay.runtime.port import Port
from roundelay.runtime.settings import Settings
from roundelay.transport.address import Address


def status(node: Node, port: Port, settings: Settings) -> dict[str, Any]:
    """All that can be told of a running node."""
    view = node.view
    packer = node.stack.delivery.packer
    drops = {str(reason): count for reason, count in sorted(node.endpoint.drops.items())}
    drops |= {
        "stranger": node.neighbours.strangers,
        "refused": node.refused,
        "unsent": port.socket.lost_sends,
        "other_groups": port.unknown_group,
        "held_too_long": port.overflowed,
    }
    return {
        "group": settings.group,
        "node": settings.node,
        "incarnation": node.incarnation,
        "engine": settings.engine,
        "phase": str(node.stack.membership.phase),
        "uptime_s": round(node.meter.uptime_s, 3),
        "view": None
        if view is None
        else {
            "id": str(view.id),
            "members": list(view.members),
            "primary": view.primary,
            "why": node.why,
            "voters": list(view.voters),
            "able": node.able,
            "transitional": view.transitional,
        },
        "warnings": node.narrator.warnings(),
        "check": None if node.check is None else node.check.status(),
        "never_heard": [peer for peer, _ in node.never_heard],
        "peers": dict(settings.peers),
        "addresses": {
            peer: str(Address(*address[:2]))
            for peer, address in sorted(node.whereabouts.addresses.items())
        },
        "rates": node.meter.rates(),
        "queues": {
            "packets_to_send": packer.waiting,
            "packets_to_read": len(node.inbox.waiting),
            "bytes_to_read": node.unread_bytes,
        },
        "counters": node.meter.counters(),
        "drops": drops,
        "latency": node.meter.latency.as_dict(),
        "rotation": node.meter.rotation.as_dict(),
        "receive_buffer_bytes": port.socket.receive_buffer,
    }
