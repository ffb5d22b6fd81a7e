"""Replicated structures next to PySyncObj's: writes, their latency, and local reads."""
