"""Pinwheel: the token goes round and orders all that waits, and everything tells who holds what."""

from functools import partial

from roundelay.protocols.dtp import engine as machine
from roundelay.protocols.dtp import policy

Config = policy.PinwheelConfig
engine = partial(machine.DtpEngine, config=Config(), policy=policy.PINWHEEL)
