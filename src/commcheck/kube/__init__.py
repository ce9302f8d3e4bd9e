"""Kubernetes: pods and nodes as hosts, container logs, MPIJobs. All of it by way of ``kubectl``."""
