"""The papers, measured: what each one claims, and what comes out in the simulator."""
