"""What loads the fabric: collective sweeps, their readers and judge, and where the fault is."""
