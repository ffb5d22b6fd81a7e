"""[Totem95], section 9: the ring of five workstations; and [BabayAmir16], the accelerated ring."""

REFERENCE = (
    "Y. Amir, L. E. Moser, P. M. Melliar-Smith, D. A. Agarwal, P. Ciarfella. The Totem "
    "Single-Ring Ordering and Membership Protocol. ACM Transactions on Computer Systems 13 "
    "(4), November 1995, pages 311-342."
)
