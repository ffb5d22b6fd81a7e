"""[DTP97], section 5: DTP next to CM, Pinwheel and Totem on an Ethernet."""
