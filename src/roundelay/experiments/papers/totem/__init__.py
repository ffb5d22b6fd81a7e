"""[Totem95], section 9: the ring of five workstations."""
