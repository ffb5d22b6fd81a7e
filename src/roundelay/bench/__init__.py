"""Measurements, always next to a peer or a floor in the same run. Nothing imports this but cli."""
