"""[ATOP98], section 6: ATOP next to All-Ack and causal multicast, with senders of unequal rates."""
