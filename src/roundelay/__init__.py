"""Totally ordered group communication for Python.

    async with roundelay.join("orders", node="a", peers=...) as group:
        await group.send(b"hello")
        async for event in group:
            ...

Names are loaded on first use: the command line and the simulator need none of them.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roundelay import blocking, structures
    from roundelay.core.ids import NodeId, View, ViewId
    from roundelay.runtime.errors import (
        ClosedError,
        ConfigError,
        DiskError,
        FailedError,
        ForeignLogError,
        ForkError,
        JournalError,
        ListenError,
        LogError,
        NameTakenError,
        NotPrimaryError,
        QueueFullError,
        RoundelayError,
        SendError,
        SessionForgottenError,
        StartError,
        StateError,
        TruncatedError,
        UncertainError,
        VersionError,
    )
    from roundelay.runtime.events import Arrival, Batch, Event, Message, Payload, Position
    from roundelay.runtime.group import Group, join
    from roundelay.runtime.log.api import Log, Session
    from roundelay.runtime.log.applying import StateMachine
    from roundelay.runtime.log.entries import Entry, EntryBatch, Lossy
    from roundelay.runtime.log.receipts import LogReceipt, SessionReceipt
    from roundelay.runtime.receipts import Receipt
    from roundelay.runtime.replicas.replicate import Replicas, Replicated, replicate
    from roundelay.runtime.settings import Settings
    from roundelay.structures.errors import Refused
    from roundelay.structures.machine import Machine
    from roundelay.structures.methods import read, write

__version__ = "0.1.0.dev0"

__all__ = [
    "Arrival",
    "Batch",
    "ClosedError",
    "ConfigError",
    "DiskError",
    "Entry",
    "EntryBatch",
    "Event",
    "FailedError",
    "ForeignLogError",
    "ForkError",
    "Group",
    "JournalError",
    "ListenError",
    "Log",
    "LogError",
    "LogReceipt",
    "Lossy",
    "Machine",
    "Message",
    "NameTakenError",
    "NodeId",
    "NotPrimaryError",
    "Payload",
    "Position",
    "QueueFullError",
    "Receipt",
    "Refused",
    "Replicas",
    "Replicated",
    "RoundelayError",
    "SendError",
    "Session",
    "SessionForgottenError",
    "SessionReceipt",
    "Settings",
    "StartError",
    "StateError",
    "StateMachine",
    "TruncatedError",
    "UncertainError",
    "VersionError",
    "View",
    "ViewId",
    "__version__",
    "blocking",
    "join",
    "read",
    "replicate",
    "structures",
    "write",
]

_HOMES = {
    "roundelay.core.ids": ("NodeId", "View", "ViewId"),
    "roundelay.runtime.errors": (
        "ClosedError",
        "ConfigError",
        "DiskError",
        "FailedError",
        "ForeignLogError",
        "ForkError",
        "JournalError",
        "ListenError",
        "LogError",
        "NameTakenError",
        "NotPrimaryError",
        "QueueFullError",
        "RoundelayError",
        "SendError",
        "SessionForgottenError",
        "StartError",
        "StateError",
        "TruncatedError",
        "UncertainError",
        "VersionError",
    ),
    "roundelay.runtime.events": ("Arrival", "Batch", "Event", "Message", "Payload", "Position"),
    "roundelay.runtime.group": ("Group", "join"),
    "roundelay.runtime.log.api": ("Log", "Session"),
    "roundelay.runtime.log.applying": ("StateMachine",),
    "roundelay.runtime.log.entries": ("Entry", "EntryBatch", "Lossy"),
    "roundelay.runtime.log.receipts": ("LogReceipt", "SessionReceipt"),
    "roundelay.runtime.receipts": ("Receipt",),
    "roundelay.runtime.replicas.replicate": ("Replicas", "Replicated", "replicate"),
    "roundelay.runtime.settings": ("Settings",),
    "roundelay.structures.errors": ("Refused",),
    "roundelay.structures.machine": ("Machine",),
    "roundelay.structures.methods": ("read", "write"),
}


def __getattr__(name: str) -> object:
    if name in ("blocking", "structures"):
        found: object = importlib.import_module(f"roundelay.{name}")
    else:
        home = next((module for module, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module 'roundelay' has no attribute {name!r}")
        found = getattr(importlib.import_module(home), name)
    globals()[name] = found  # From now on an ordinary name, at its ordinary price.
    return found


def __dir__() -> list[str]:
    return __all__
