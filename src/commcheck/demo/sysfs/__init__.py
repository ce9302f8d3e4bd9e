"""/sys and /proc of the embedded fleet, one file for each part, from the state of a host."""
