"""What the names in a trace mean: communication kernels, collectives, data types, frameworks.

Sources: torch.profiler (Kineto) ActivityType, NCCL device kernel names of 2.7 to 2.28, PyTorch
ParamCommsUtils, torch_npu profiler, and traces of the frameworks themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from commcheck.lazy import regex


class Kind(IntEnum):
    """What a device is doing during an event."""

    COMPUTE = 0
    COMM = 1
    MEM = 2
    OPERATOR = 3  # a collective whose time other rows already hold: counted, not timed
    TASK = 4  # the same of computing
    OTHER = 5


_EXPERT_KERNELS: Final = (
    "deep_ep::",  # and its branch for racks; its other kernels compute where tokens go
    r"hybrid_ep::\w*(dispatch|combine|sync)",
    r"\bEp(Dispatch|Combine)\w*Kernel",  # mori, on ROCm
)
_TENSOR_KERNELS: Final = ("userbuffers_",)  # Transformer Engine, --tp-comm-overlap
"""Kernels of libraries that are made for one kind of groups."""

COMM_KERNELS: Final = (
    "nccl",  # and ncclSymk, ncclKernel_, ncclDevKernel_
    "rccl",
    "hccl",
    "hcom_",
    "msccl",
    *_EXPERT_KERNELS,
    *_TENSOR_KERNELS,
    "nvshmem",
    r"(one|two)_?shot_all_?reduce",
    r"all_?reduce_(one|two)_?shot",
    "cross_device_reduce",
    "multimem_",
)
"""Patterns of communication kernels, without regard to case. Options add to them."""

_KINDS: Final = (
    # The order matters: "reduce" is part of most of the others.
    (regex(r"all_?reduce|cross_device_reduce", re.I), "allreduce"),
    (regex(r"reduce_?scatter", re.I), "reduce_scatter"),
    (regex(r"all_?gather", re.I), "allgather"),
    (regex(r"all_?to_?all", re.I), "alltoall"),
    (regex(r"batch_?send_?recv|send_?recv", re.I), "sendrecv"),
    (regex(r"broadcast|boardcast", re.I), "broadcast"),
    (regex(r"send", re.I), "send"),
    (regex(r"recv|receive", re.I), "recv"),
    (regex(r"gather", re.I), "gather"),
    (regex(r"(?<!reduce_)scatter", re.I), "scatter"),
    (regex(r"barrier", re.I), "barrier"),
    (regex(r"reduce", re.I), "reduce"),
)

OF_EXPERTS: Final = regex("|".join(_EXPERT_KERNELS), re.I)
OF_LAYERS: Final = regex("|".join(_TENSOR_KERNELS), re.I)
"""Kernels by which the experts of a layer get their tokens, and those that sum up a layer."""

POINT_TO_POINT: Final = frozenset({"send", "recv", "sendrecv"})
"""Waiting for a pipeline neighbour, not bandwidth."""

TINY_BYTES: Final = 64_000
"""Up to here the time of a collective is alpha itself."""

NO_TRANSFER: Final = frozenset({"wait", "init", "end"})
"""Collective names of record_param_comms that move nothing."""

DTYPE_BYTES: Final = {
    "float": 4, "fp32": 4, "half": 2, "fp16": 2, "bfloat16": 2, "bfp16": 2, "bf16": 2,
    "double": 8, "fp64": 8, "int": 4, "int32": 4, "uint32": 4, "long": 8, "int64": 8, "uint64": 8,
    "short": 2, "int16": 2, "uint16": 2, "byte": 1, "char": 1, "int8": 1, "uint8": 1, "bool": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
    "complexfloat": 8, "complexdouble": 16,
}  # fmt: skip
"""Bytes of one element, by the lower-case name in a trace."""

FRAMEWORKS: Final = (
    ("ZeRO-3", regex(r"PartitionedParameterCoordinator|Parameter all-gather wait")),
    ("DeepSpeed", regex(r"^DeepSpeed|allreduce_gradients|_zero_optimizer")),
    ("FSDP2", regex(r"^FSDP::")),
    ("FSDP", regex(r"^FullyShardedDataParallel\.")),
    ("DDP", regex(r"^DistributedDataParallel\.forward")),
)
"""Annotations that only one framework writes, the more telling first. Megatron writes none."""

_MEGATRON: Final = regex(r"(MODEL|DATA|CONTEXT)_PARALLEL_GROUP")
"""How Megatron-LM core/parallel_state.py describes its process groups."""

FORWARD: Final = regex(
    r"^(forward|fwd)$|^(DistributedDataParallel|FullyShardedDataParallel|DeepSpeedEngine)\.forward$"
)
"""Host annotations that span the forward pass."""

INPUT: Final = regex(r"^enumerate\(DataLoader\)#|^\[pl\]\[profile\].*\.train_dataloader_next$")
"""Host annotations in which the training thread waits for its next batch: torch.utils.data, and
PyTorch Lightning's profiler."""

CPU_COMM: Final = regex(r"^(gloo|mpi|ucc):")
"""Annotations that are themselves the communication: without a device the host does it."""

CPU_WORK: Final = regex(
    r"^(?!_?c10d|autograd::|torch::autograd::|record_param_comms)[\w.]+::|^CompiledFunction"
)
"""Operators that work on the host. Nodes of autograd span whatever their hooks do, waiting for a
collective too; what works in them is an operator of its own."""

LAUNCH: Final = regex(r"launch|memcpy|memset", re.I)
"""Host calls that start device work; cudaGraphLaunch starts many with one correlation."""


def comm_pattern(extra: tuple[str, ...] = ()) -> re.Pattern[str]:
    """One pattern of all communication kernels. Raises ``re.error`` for a wrong extra one."""
    return re.compile("|".join((*COMM_KERNELS, *extra)), re.I)


def collective(name: str) -> str:
    """The collective that a kernel, operator or record names; ``other`` where it tells none."""
    return next((kind for pattern, kind in _KINDS if pattern.search(name)), "other")


def bus_factor(kind: str, size: int) -> float:
    """busbw / algbw for a group of ``size`` ranks (nccl-tests doc/PERFORMANCE.md)."""
    if size < 1:
        return 1.0
    if kind == "allreduce":
        return 2 * (size - 1) / size
    if kind in ("allgather", "reduce_scatter", "alltoall"):
        return (size - 1) / size
    return 1.0


def framework(annotations: set[str], groups: Iterable[str] = ()) -> str:
    """The framework that annotations or descriptions of groups give away, or "" where none does."""
    for name, pattern in FRAMEWORKS:
        if any(pattern.search(each) for each in annotations):
            return name
    return "Megatron" if any(_MEGATRON.search(each) for each in groups) else ""
