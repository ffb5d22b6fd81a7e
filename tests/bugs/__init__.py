"""Bugs planted in the product, and what convicts each of them."""
