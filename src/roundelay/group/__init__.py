"""The stack a node runs: messages in packets, packets through an engine, deliveries out. Pure."""
