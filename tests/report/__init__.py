"""Reports, and how they look."""
