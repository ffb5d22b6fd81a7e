"""What `roundelay status` shows, as one document."""

from typing import Any

from roundelay.runtime.node import Node
from roundelay.runtime.port import Port
from roundelay.runtime.settings import Settings
from roundelay.transport.address import Address
from roundelay.wire.primitives import Reason


def status(node: Node, port: Port, settings: Settings) -> dict[str, Any]:
    """The status of a running node."""
    tracing = node.instruments.tracing
    check = None if tracing is None else tracing.check
    view = node.view
    core = node.core.status
    tags = node.endpoint.codec.tags
    drops = {str(reason): count for reason, count in sorted(node.endpoint.drops.items())}
    strangers = node.admission.known_peers.strangers + node.endpoint.drops.get(Reason.STRANGER, 0)
    drops |= {
        str(Reason.STRANGER): strangers,
        "refused": node.backlog.refused,
        "unsent": port.socket.lost_sends,
        "buffer_full": port.socket.lost_receives,
        "other_groups": port.unknown_group,
        "held_too_long": port.overflowed,
    }
    return {
        "group": settings.group,
        "node": settings.node,
        "incarnation": node.incarnation,
        "engine": settings.engine,
        "phase": core.phase,
        "gather": core.gather if core.phase == "gather" else "",
        "uptime_s": round(node.meter.uptime_s, 3),
        "view": None
        if view is None
        else {
            "id": str(view.id),
            "members": list(view.members),
            "primary": view.primary,
            "why": node.deliveries.why,
            "voters": list(view.voters),
            "able": node.deliveries.able,
            "transitional": view.transitional,
        },
        "warnings": node.node_log.warnings(),
        "seal": None if node.sealing is None else node.sealing.status(),
        "check": None if check is None else check.status(),
        "trace": None if tracing is None else tracing.status(),
        "never_heard": node.admission.known_peers.never_heard(),
        "peers": dict(settings.peers),
        "addresses": {
            peer: str(Address(*address[:2]))
            for peer, address in sorted(node.peer_addresses.addresses.items())
        },
        "rates": node.meter.rates(),
        "queues": {
            "packets_to_send": core.waiting_packets,
            "packets_to_read": len(node.deliveries.inbox.waiting),
            "bytes_to_read": node.backlog.unread_bytes,
        },
        "log": None if node.log is None else node.log.document(settings.fsync),
        "counters": node.meter.counters(),
        "frames": {tags[tag]: count for tag, count in sorted(node.meter.frames.items())},
        "drops": drops,
        "latency": node.meter.latency.as_dict(),
        "rotation": node.meter.rotation.as_dict(),
        "token_ns": node.meter.token_ns,
        "timeout_s": settings.timeout_s,
        "receive_buffer_bytes": port.socket.receive_buffer,
    }
