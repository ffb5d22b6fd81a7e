"""The trace: one schema for simulated and real runs, its files, and a language for small ones."""
