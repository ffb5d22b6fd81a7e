"""DTP in the simulator; what it shares with CM and Pinwheel is in `family`."""

from roundelay.sim.engines.dtp.family import simulation

SIMULATION = simulation()
