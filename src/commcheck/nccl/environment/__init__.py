"""The environment audit: what a job's variables say, and what NCCL and HCCL make of them."""
