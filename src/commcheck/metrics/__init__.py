"""What a fleet's monitoring knows of a job: Prometheus asked once for all hosts, and judged."""
