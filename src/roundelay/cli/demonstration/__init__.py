"""The parts of `roundelay demo`: a group of real processes, and two in the simulator."""
