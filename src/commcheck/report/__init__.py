"""Reports: pure text rendered from one record of a run, and one place that writes files."""
