"""ATOP: one order without a token, at the pace of the members that send. Pure."""
