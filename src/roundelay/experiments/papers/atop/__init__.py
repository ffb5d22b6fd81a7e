"""[ATOP98], section 6: ATOP next to All-Ack and causal multicast, with senders of unequal rates."""

REFERENCE = (
    "G. V. Chockler, N. Huleihel, D. Dolev. An Adaptive Totally Ordered Multicast Protocol "
    "that Tolerates Partitions. 17th ACM Symposium on Principles of Distributed Computing, "
    "1998."
)
