"""[TachikawaTakizawa], section 5: what selective retransmission saves, and what recovery costs."""
