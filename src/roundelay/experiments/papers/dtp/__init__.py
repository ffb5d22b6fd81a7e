"""[DTP97], section 5: DTP next to CM, Pinwheel and Totem on an Ethernet."""

REFERENCE = (
    "J. Kim, C. Kim. A total ordering protocol using a dynamic token-passing scheme. "
    "Distributed Systems Engineering 4 (2), 1997, from page 87."
)
