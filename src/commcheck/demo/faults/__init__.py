"""The faults of the embedded fleet, one file each: it changes facts, never an output."""
