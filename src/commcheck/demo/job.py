"""The training job of the embedded fleet: processes and variables of its ranks on one host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from commcheck.demo.state import HostState

HOSTS: Final = 2
"""Hosts over which each job runs."""

FIRST_PID: Final = 41000


def local_ranks(host: HostState) -> Iterator[tuple[int, int]]:
    """(local rank, pid) of every rank whose process is there."""
    for local in range(len(host.gpus)):
        if host.job is not None and local not in host.job.lost:
            yield local, FIRST_PID + local


def words(host: HostState) -> tuple[str, ...]:
    """The command line of a rank."""
    flags = host.job.flags if host.job is not None else ()
    script = "/workspace/pretrain_gpt.py"
    return ("/usr/bin/python3", "-u", script, "--micro-batch-size", "1", *flags)


def leads_job(host: HostState) -> bool:
    """True for the host on which the job has its rank 0."""
    return (host.number - 1) % HOSTS == 0


def variables(host: HostState, local: int) -> Mapping[str, str]:
    """The environment of a rank: what torchrun sets, and what the site sets for all jobs."""
    size = len(host.gpus)
    node = (host.number - 1) % HOSTS
    found = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HF_TOKEN": "hf_of_the_embedded_fleet",
        "MASTER_ADDR": f"gpu-{host.number - node:02d}",
        "MASTER_PORT": "29500",
        "WORLD_SIZE": str(HOSTS * size),
        "LOCAL_WORLD_SIZE": str(size),
        "RANK": str(node * size + local),
        "LOCAL_RANK": str(local),
        "OMP_NUM_THREADS": "8",
        "NCCL_DEBUG": "WARN",
        **_mark(host),
        **(dict(host.job.variables) if host.job is not None else {}),
    }
    return {name: value for name, value in found.items() if value}


def _mark(host: HostState) -> Mapping[str, str]:
    """NCCL_IB_TC as the NICs' packets are marked; none on InfiniBand."""
    dscps = {nic.roce_dscp for nic in host.nics if nic.link_layer == "Ethernet"}
    dscp = max(dscps, default=0)
    return {"NCCL_IB_TC": str(4 * dscp + 2)} if dscp else {}
