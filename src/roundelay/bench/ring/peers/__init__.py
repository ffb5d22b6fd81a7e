"""Others that order messages between processes, measured with the same jobs as our nodes."""
