"""A short profiled training step on hosts, and a few profiled steps of the user's own script."""
