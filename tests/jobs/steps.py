"""Training steps made by hand: members that may train, and what the script would have printed."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from commcheck.command import Output
from commcheck.jobs.job import Member
from commcheck.loads import site_of
from commcheck.model import Accelerator, Host, Machine

RAN: Mapping[str, object] = {
    "torch": "2.7.1+cu128",
    "device": "NVIDIA H100 80GB HBM3",
    "backend": "nccl",
    "sharding": "ddp",
    "parameters": 1_610_956_800,
    "step_ms": [161.5, 160.5],
}


def member(
    platform: str = "gpu-roce", gpus: int = 8, name: str = "gpu-01", **variables: object
) -> Member:
    """A host that is ready."""
    host = Host(name, variables)
    machine = Machine(
        name,
        platform=platform,
        accelerators=tuple(Accelerator(n, "nvidia", f"0000:{n:02x}:00.0") for n in range(gpus)),
    )
    return Member(host=host, machine=machine, site=site_of(host, platform), address=name)


def printed(
    paths: Sequence[str | Path], ran: Mapping[str, object] = RAN, size: int = 300, first: int = 0
) -> str:
    """What the script prints of traces, in lines of ``size`` bytes each, from rank ``first`` on."""
    lines = [] if first else [f"step {json.dumps({'ranks': len(paths), **ran})}"]
    for rank, path in enumerate(paths, first):
        data = gzip.compress(Path(path).read_bytes())
        for at in range(0, len(data), size):
            lines.append(f"trace {rank} {base64.b64encode(data[at : at + size]).decode()}")
        lines.append(f"traced {rank} {len(data)}")
    return "\n".join((*lines, ""))


def output(text: str, stderr: str = "", rc: int = 0) -> Output:
    """As the engine hands it over."""
    return Output(text, stderr, rc)
