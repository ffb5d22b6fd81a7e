"""The token as one member sees it: whether it is here, and the transfers that were heard of."""

from enum import StrEnum

from roundelay.protocols.dtp.messages import Ack


class Grip(StrEnum):
    """What a member has to do with the token."""

    HOLD = "hold"
    """It is here."""
    TRST = "trst"
    """It was handed on from here, and nothing shows that it was taken."""
    EMPT = "empt"
    """It is elsewhere."""


HOLD, TRST, EMPT = Grip
"""Once more by themselves: to look one up in its class costs as much as three calls."""


class Token:
    """Transfers are numbered: one that is not newer than all before means nothing."""

    __slots__ = ("answers", "grip", "hop", "me", "next", "sent")

    def __init__(self, me: int) -> None:
        self.me = me
        self.grip = EMPT if me else HOLD
        self.hop = 0
        """The latest transfer that was heard of."""
        self.next = 0
        """To whom it went."""
        self.sent: Ack | None = None
        """The acknowledgment that handed the token on from here; needed while in TRST."""
        self.answers = False
        """Whether the successor was heard since then."""

    def __str__(self) -> str:
        return f"{self.grip}, hop {self.hop} to {self.next + 1}"

    def pass_on(self, ack: Ack) -> None:
        """Hand the token on with an acknowledgment."""
        self.hop = ack.hop
        self.next = ack.next
        self.sent = ack
        self.answers = False
        self.grip = TRST

    def note_transfer(self, ack: Ack, held: int) -> Grip:
        """Take note of a transfer and say what this member has to do with the token now. `held`
        is what it held before."""
        if ack.hop > self.hop and self.grip is not HOLD:
            self.hop = ack.hop
            self.next = ack.next
            self.grip = HOLD if ack.next == self.me else EMPT
        return self.grip


class LiteralToken(Token):
    """As the paper has it: whoever is named has the token, and a transfer is taken for confirmed
    by a larger number, by being named, or by anything that the successor acknowledges."""

    def note_transfer(self, ack: Ack, held: int) -> Grip:
        self.hop = max(self.hop, ack.hop)
        if self.grip is TRST:
            assert self.sent is not None
            by_successor = ack.holder == self.sent.next
            if ack.last > held or ack.next == self.me or by_successor:
                self.grip = EMPT
        if ack.next == self.me:
            self.grip = HOLD
        return self.grip
