"""ATOP: one order without a token, at the pace of the members that send. Pure."""

ENGINES = ("atop",)
"""The modules of this package that are engines."""
