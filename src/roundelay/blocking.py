"""Groups for programs without asyncio; `roundelay.runtime.blocking` has them."""

from roundelay.runtime.blocking import Group, Receipt, join

__all__ = ["Group", "Receipt", "join"]
