"""The training job of the embedded fleet: processes and variables of its ranks on one host."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from commcheck.demo.state import HostState

HOSTS: Final = 2
"""Hosts over which each job runs."""

FIRST_PID: Final = 41000


def size_of(host: HostState) -> int:
    """Ranks on the host: one for each GPU or NPU."""
    return len(host.gpus) or len(host.npus)


def local_ranks(host: HostState) -> Iterator[tuple[int, int]]:
    """(local rank, pid) of every rank whose process is there."""
    for local in range(size_of(host)):
        if host.job is not None and local not in host.job.lost:
            yield local, FIRST_PID + local


def words(host: HostState) -> tuple[str, ...]:
    """The command line of a rank."""
    return ("/usr/bin/python3", "-u", *_script(host.job.flags if host.job is not None else ()))


def trained(flags: Sequence[str]) -> tuple[str, list[str]]:
    """What the inventory says of how the site starts its training, with these flags."""
    return "commcheck_train_command", ["torchrun", "--nproc-per-node", "8", *_script(flags)]


def _script(flags: Sequence[str]) -> tuple[str, ...]:
    return ("/workspace/pretrain_gpt.py", "--micro-batch-size", "1", *flags)


def leads_job(host: HostState) -> bool:
    """True for the host on which the job has its rank 0."""
    return (host.number - 1) % HOSTS == 0


def comm_id(host: HostState) -> str:
    """The id of the job's world communicator, as NCCL prints it; ``host``: the job's first."""
    return f"0x5f3a9c0d7b21{host.number:04x}"


def log_path(host: HostState, pid: int) -> str:
    """The log of a rank, from the root: NCCL_DEBUG_FILE filled in."""
    return f"var/log/nccl/{host.name}.{pid}"


_NCCL: Final = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV,NET,GRAPH",
    "NCCL_DEBUG_FILE": "/var/log/nccl/%h.%p",
}
_HCCL: Final = {
    "HCCL_CONNECT_TIMEOUT": "600",
    "HCCL_SOCKET_IFNAME": "eth0",
    "HCCL_RDMA_TC": "132",
    "HCCL_RDMA_SL": "4",
    "ASCEND_GLOBAL_LOG_LEVEL": "3",
}
"""What the site sets for all jobs; of HCCL the defaults, said once more."""


def variables(host: HostState, local: int) -> Mapping[str, str]:
    """The environment of a rank: what torchrun sets, and what the site sets for all jobs."""
    size = size_of(host)
    node = (host.number - 1) % HOSTS
    found = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HF_TOKEN": "hf_of_the_embedded_fleet",
        "MASTER_ADDR": f"gpu-{host.number - node:02d}",
        "MASTER_PORT": str(_port(host)),
        "WORLD_SIZE": str(HOSTS * size),
        "LOCAL_WORLD_SIZE": str(size),
        "RANK": str(node * size + local),
        "LOCAL_RANK": str(local),
        "OMP_NUM_THREADS": "8",
        "HOSTNAME": host.name,
        **(_HCCL if host.npus else _NCCL),
        **_mark(host),
        **(dict(host.job.variables) if host.job is not None else {}),
    }
    return {name: value for name, value in found.items() if value}


def _port(host: HostState) -> int:
    """Where its ranks meet: hosts of two kinds, or of two marks, are two jobs side by side."""
    kind = dict(host.declared).get("commcheck_peers"), sorted(_mark(host).items())
    return 29500 + zlib.crc32(repr(kind).encode()) % 400


def _mark(host: HostState) -> Mapping[str, str]:
    """NCCL_IB_TC as the NICs' packets are marked; none on InfiniBand."""
    dscps = {nic.roce_dscp for nic in host.nics if nic.link_layer == "Ethernet"}
    dscp = max(dscps, default=0)
    return {"NCCL_IB_TC": str(4 * dscp + 2)} if dscp else {}
