"""Bucket sizes: what a training step would take with other ones, and which one to set."""
