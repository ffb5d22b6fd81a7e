"""Ordering engines, one module each. They know neither each other nor the world."""
