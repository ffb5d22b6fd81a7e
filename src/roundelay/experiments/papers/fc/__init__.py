"""[WangWu], section 4.2: delay against request size, and recovery, next to Totem."""

REFERENCE = (
    "Y. Wang, J. Wu. A Nonblocking Approach for Reaching an Agreement on Request Total Orders."
)
