"""CM in the simulator: as DTP."""

from roundelay.sim.engines.dtp.family import simulation

SIMULATION = simulation()
