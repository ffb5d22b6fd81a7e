"""A fixed sequencer, as an engine for Roundelay that lives outside of it."""
