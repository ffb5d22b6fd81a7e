"""Groups for programs without asyncio; `roundelay.runtime.blocking` has them."""

from roundelay.runtime.blocking import (
    Group,
    Log,
    LogReceipt,
    Receipt,
    Session,
    SessionReceipt,
    join,
)
from roundelay.runtime.replicas.blocking import Replicas, Replicated, replicate

__all__ = [
    "Group",
    "Log",
    "LogReceipt",
    "Receipt",
    "Replicas",
    "Replicated",
    "Session",
    "SessionReceipt",
    "join",
    "replicate",
]
