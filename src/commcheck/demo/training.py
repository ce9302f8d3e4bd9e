"""What the training step prints on a simulated host: traces follow from its GPUs and links. Pure.

A data-parallel step of twelve blocks: each rank computes at its own GPU's pace, and the gradients
of a block are reduced, over the host's links, once the last rank has them.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from commcheck.demo.paths import inside
from commcheck.demo.state import HostState

_BLOCKS: Final = 12
_WIDTH: Final = 4096
_PARAMETERS: Final = 8 * _WIDTH * _WIDTH + 7 * _WIDTH  # of one block
_FORWARD_NS: Final = 3_000_000  # of one block, on a whole H100
_BACKWARD_NS: Final = 6_000_000
_UPDATE_NS: Final = 2_000_000
_LAUNCH_NS: Final = 8_000
_PIECE: Final = 3000
_GEMM: Final = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas"
_REDUCE: Final = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@dataclass(frozen=True, slots=True)
class _Kernel:
    """One kernel of one rank, in ns. ``seq``: of the all-reduce, -1 for computing."""

    launched: int
    start: int
    end: int
    seq: int = -1


def printed(host: HostState, options: Mapping[str, object]) -> str:
    """The lines of the step. ``options``: as the script gets them."""
    ranks, steps = int(str(options["ranks"])), int(str(options["steps"]))
    way = inside(host, nvls=True)
    if not host.gpus or options["device"] != "cuda":
        return _line("problem", {"missing": "torch", "python": "/usr/bin/python3"})
    if way is None or ranks > len(host.gpus):
        return _line("problem", {"what": "RuntimeError: CUDA error: invalid device ordinal"})
    moved = 2 * _PARAMETERS * 2 * (ranks - 1) / ranks
    reduce_ns = int(1e9 * (2 * (ranks - 1) * way.alpha_s + moved / way.beta_bytes_s))
    paces = [gpu.pace for gpu in host.gpus[:ranks]]
    begin, spans, events = 1_000_000, [], [list[str]() for _ in paces]
    for number in range(1, steps + 1):
        made = _step(begin, paces, reduce_ns, _BLOCKS * (number - 1))
        end = max(kernels[-1].end for kernels in made) + 20_000
        spans.append(end - begin)
        for rank, kernels in enumerate(made):
            events[rank] += _events(number, begin, end, kernels, 1000 * number, ranks)
        begin = end + 50_000
    told = {
        "torch": "2.7.1+cu128",
        "device": host.gpus[0].name,
        "backend": "nccl",
        "ranks": ranks,
        "sharding": options["sharding"],
        "parameters": _BLOCKS * _PARAMETERS,
        "step_ms": [span / 1e6 for span in spans],
    }
    traces = (line for rank, mine in enumerate(events) for line in _trace(rank, ranks, mine))
    return _line("step", told) + "".join(traces)


def _step(
    begin: int, paces: list[float], reduce_ns: int, seq: int
) -> tuple[tuple[_Kernel, ...], ...]:
    """The kernels of every rank in one step; the last is the optimizer's."""
    launch = iter(range(begin, begin + 10**9, _LAUNCH_NS))
    at = [begin + 30_000] * len(paces)
    free = list(at)  # when the stream of each rank's collectives is
    made: list[list[_Kernel]] = [[] for _ in paces]

    def compute(nominal_ns: int, after: list[int]) -> None:
        launched = next(launch)
        for rank, pace in enumerate(paces):
            start = max(at[rank], after[rank])
            at[rank] = start + int(nominal_ns / pace)
            made[rank].append(_Kernel(launched, start, at[rank]))

    for _ in range(_BLOCKS):
        compute(_FORWARD_NS, at)
    for block in range(_BLOCKS):
        compute(_BACKWARD_NS, at)
        launched = next(launch)
        starts = [max(at[rank], free[rank]) for rank in range(len(paces))]
        free = [max(starts) + reduce_ns] * len(paces)
        for rank, start in enumerate(starts):
            made[rank].append(_Kernel(launched, start, free[rank], seq + block))
    compute(_UPDATE_NS, free)
    return tuple(map(tuple, made))


# --- as torch.profiler writes it ----------------------------------------------------------------


def _events(
    number: int, begin: int, end: int, kernels: tuple[_Kernel, ...], first: int, ranks: int
) -> Iterator[str]:
    name = f"ProfilerStep#{number}"
    yield _event("user_annotation", name, 41000, 41000, begin, end, {"External id": first})
    for correlation, kernel in enumerate(kernels, first + 1):
        given: dict[str, object] = {"correlation": correlation}
        until = kernel.launched + _LAUNCH_NS // 2
        yield _event(
            "cuda_runtime", "cudaLaunchKernel", 41000, 41000, kernel.launched, until, given
        )
        stream = 7 if kernel.seq < 0 else 20
        given |= {"device": 0, "stream": stream}
        if kernel.seq >= 0:
            given |= {
                "Collective name": "allreduce",
                "In msg nelems": _PARAMETERS,
                "Out msg nelems": _PARAMETERS,
                "Group size": ranks,
                "dtype": "BFloat16",
                "Process Group Name": "0",
                "Process Group Ranks": str(list(range(ranks))),
                "Seq": kernel.seq,
            }
        what = _GEMM if kernel.seq < 0 else _REDUCE
        yield _event("kernel", what, 0, stream, kernel.start, kernel.end, given)


def _event(
    cat: str, name: str, pid: int, tid: int, start: int, end: int, args: Mapping[str, object]
) -> str:
    return (
        f'{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid}, '
        f'"ts": {start / 1000:.3f}, "dur": {(end - start) / 1000:.3f}, "args": {json.dumps(args)}}}'
    )


def _trace(rank: int, ranks: int, events: list[str]) -> Iterator[str]:
    head = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
    }
    text = f'{json.dumps(head)[:-1]}, "traceEvents": [\n' + ",\n".join(events) + "\n]}\n"
    data = gzip.compress(text.encode(), mtime=0)
    for at in range(0, len(data), _PIECE):
        yield f"trace {rank} {base64.b64encode(data[at : at + _PIECE]).decode()}\n"
    yield f"traced {rank} {len(data)}\n"


def _line(word: str, told: Mapping[str, object]) -> str:
    return f"{word} {json.dumps(told)}\n"
