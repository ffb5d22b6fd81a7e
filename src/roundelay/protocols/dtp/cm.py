"""CM: the token goes round, and only acknowledgments tell who holds what."""

from functools import partial

from roundelay.protocols.dtp import engine as machine
from roundelay.protocols.dtp import policy

Config = policy.Config
engine = partial(machine.DtpEngine, config=Config(), policy=policy.CM)
