"""The embedded fleet: simulated hosts behind real SSH, for trying out, tests and drills."""
