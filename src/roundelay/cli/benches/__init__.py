"""What `roundelay bench` measures with real processes, a module each."""
