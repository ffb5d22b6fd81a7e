"""The real node's side of the replicated log: its writer thread, its readers and its API."""
