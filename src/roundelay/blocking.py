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

__all__ = ["Group", "Log", "LogReceipt", "Receipt", "Session", "SessionReceipt", "join"]
