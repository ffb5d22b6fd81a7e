"""What the simulator knows of each engine of Roundelay: one module or package for each."""
