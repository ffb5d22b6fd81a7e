"""Links: reliable FIFO multicast within a view, for engines that assume one below them. Pure."""
