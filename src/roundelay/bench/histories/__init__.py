"""Clients of replicated machines at real nodes that are killed, paused and cut off; judged."""
