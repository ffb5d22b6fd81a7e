"""DTP: the token goes to the member that is known to hold least, so that it is heard of."""

from functools import partial

from roundelay.protocols.dtp import engine as machine
from roundelay.protocols.dtp import policy

Config = policy.Config
engine = partial(machine.DtpEngine, config=Config(), policy=policy.DTP)
