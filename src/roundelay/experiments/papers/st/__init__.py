"""[TachikawaTakizawa], section 5: what selective retransmission saves, and what recovery costs."""

REFERENCE = (
    "T. Tachikawa, M. Takizawa. Selective Total-Ordering Group Communication on Single High- "
    "Speed Channel. International Conference on Network Protocols (ICNP), 1994. doi "
    "10.1109/ICNP.1994.344358."
)
