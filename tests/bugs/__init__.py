"""Bugs planted in Totem and membership, and the stories that show each of them."""
