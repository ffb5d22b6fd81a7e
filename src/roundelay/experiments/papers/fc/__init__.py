"""[WangWu], section 4.2: delay against request size, and recovery, next to Totem."""
