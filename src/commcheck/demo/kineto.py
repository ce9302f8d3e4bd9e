"""A simulated step as torch.profiler writes it: the text of a trace, packed, in lines. Pure."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Final

from commcheck.lazy import dataclass

_PIECE: Final = 3000
_THREAD: Final = 41000
_GEMM: Final = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas"
_NCCL: Final = {
    "allreduce": "AllReduce_Sum_bf16",
    "_allgather_base": "AllGather",
    "_reduce_scatter_base": "ReduceScatter_Sum_bf16",
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of one rank, in ns; ``launched``: from when its launch ran until when.

    ``collective``: what it is as c10d names it, "" for computing. ``elements``: in and out.
    """

    launched: tuple[int, int]
    start: int
    end: int
    collective: str = ""
    elements: tuple[int, int] = (0, 0)
    seq: int = -1


@dataclass(frozen=True, slots=True)
class Traced:
    """One step of one rank, in ns. ``forward``: what its annotation spans on the host."""

    begin: int
    end: int
    forward: tuple[int, int]
    kernels: tuple[Kernel, ...]


def lines(rank: int, ranks: int, forward: str, steps: tuple[Traced, ...]) -> Iterator[str]:
    """The packed trace of a rank as the training step prints it. ``forward``: its annotation."""
    head = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
    }
    events = ",\n".join(
        event
        for number, step in enumerate(steps)
        for event in _events(number, step, forward, ranks)
    )
    text = f'{json.dumps(head)[:-1]}, "traceEvents": [\n{events}\n]}}\n'
    data = gzip.compress(text.encode(), 1, mtime=0)
    for at in range(0, len(data), _PIECE):
        yield f"trace {rank} {base64.b64encode(data[at : at + _PIECE]).decode()}\n"
    yield f"traced {rank} {len(data)}\n"


def _events(number: int, step: Traced, forward: str, ranks: int) -> Iterator[str]:
    first = (number + 1) * 10_000
    about = {"External id": first}
    step_name = f"ProfilerStep#{number + 1}"
    yield _event("user_annotation", step_name, _THREAD, _THREAD, (step.begin, step.end), about)
    yield _event("user_annotation", forward, _THREAD, _THREAD, step.forward, about)
    group = str(list(range(ranks)))
    for correlation, kernel in enumerate(step.kernels, first + 1):
        given: dict[str, object] = {"correlation": correlation}
        call = "cudaLaunchKernel"
        yield _event("cuda_runtime", call, _THREAD, _THREAD, kernel.launched, given)
        stream, name = 7, _GEMM
        if kernel.collective:
            stream = 20
            name = f"ncclDevKernel_{_NCCL[kernel.collective]}_RING_LL(ncclDevKernelArgsStorage)"
            given |= {
                "Collective name": kernel.collective,
                "In msg nelems": kernel.elements[0],
                "Out msg nelems": kernel.elements[1],
                "Group size": ranks,
                "dtype": "BFloat16",
                "Process Group Name": "0",
                "Process Group Ranks": group,
                "Seq": kernel.seq,
            }
        given |= {"device": 0, "stream": stream}
        yield _event("kernel", name, 0, stream, (kernel.start, kernel.end), given)


def _event(
    cat: str, name: str, pid: int, tid: int, span: tuple[int, int], args: Mapping[str, object]
) -> str:
    start, end = span
    return (
        f'{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid}, '
        f'"ts": {start / 1000:.3f}, "dur": {(end - start) / 1000:.3f}, "args": {json.dumps(args)}}}'
    )
