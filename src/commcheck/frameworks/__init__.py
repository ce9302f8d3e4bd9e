"""Settings of training frameworks that decide when and how a job communicates."""
