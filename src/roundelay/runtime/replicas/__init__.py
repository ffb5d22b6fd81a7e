"""Replicated machines at a running node: the port under their faces, and `replicate`."""
