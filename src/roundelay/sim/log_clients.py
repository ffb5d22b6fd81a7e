"""Clients that append in named sessions, as far as they know of each other's nodes."""


class LogClients:
    """What the clients of all nodes know who append in sessions of their own names."""

    def __init__(self) -> None:
        self.opened: set[str] = set()
        """Sessions that were opened at some node."""
        self.gave_up: set[str] = set()
        """Those that the log has forgotten. Their clients append nothing more: opened again, a
        session would know of no number, and what is repeated in it might be there twice."""
