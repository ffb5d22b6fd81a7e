"""The simulator: virtual time, a seeded network, faults. It drives cores as a node would.

A run is a pure function of its scenario, its seed and the version of Roundelay.
"""
