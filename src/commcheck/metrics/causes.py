"""What a job's metrics can show, with what to do about it."""

from __future__ import annotations

from typing import Final

from commcheck.model import Cause, Remedy, Words

TITLE: Final = Words("Accelerators do not wait for the network", "加速器未在等待网络")
CHECK_ID: Final = "runtime.comm-bound"

_READS = Words("None, it only looks.", "无，只读。")
_PROFILED = Words("The job runs a few steps under torch.profiler.", "作业开启几步 profiler。")

CLIMB_DOWN = Remedy(
    command="commcheck run -i INVENTORY incident",
    effect=Words(
        "Layers below first: a slow rail, lost packets or a wrong algorithm make the same picture.",
        "先查下层：慢轨、丢包或算法选错会呈现同样的现象。",
    ),
    precondition=_READS,
)
TRACE = Remedy(
    command="commcheck analyze trace DIR",
    effect=Words(
        "Profile a few steps: says whether overlap, buckets or a late rank are to blame.",
        "采样若干步：判断是重叠不足、桶大小，还是某个 rank 落后。",
    ),
    precondition=_PROFILED,
)
LESS = Remedy(
    command="",
    effect=Words(
        "Send less or hide more: larger micro batch or gradient accumulation, overlap, "
        "tensor parallelism kept inside a host.",
        "减少或隐藏通信：增大微批或梯度累积、开启重叠、张量并行限制在主机内。",
    ),
    precondition=Words("A restart from a checkpoint.", "从检查点重启。"),
)
INPUT = Remedy(
    command="commcheck analyze trace DIR",
    effect=Words(
        "Shows what the accelerators wait for: a late rank, launches, input. The rank that waits "
        "least is the late one.",
        "查看加速器在等什么：落后的 rank、内核下发或数据输入。等待最少的 rank 即为落后者。",
    ),
    precondition=_PROFILED,
)
LOGS = Remedy(
    command="commcheck analyze log LOG",
    effect=Words(
        "Says which transport NCCL chose, and why not RDMA (NET/Socket, NCCL_IB_DISABLE).",
        "查看 NCCL 选用的传输方式，以及为何未用 RDMA（NET/Socket、NCCL_IB_DISABLE）。",
    ),
    precondition=Words("A job's log with NCCL_DEBUG=INFO.", "作业日志含 NCCL_DEBUG=INFO。"),
)

BOUND: Final = Cause(
    slug="communication-bound",
    title=Words("Communication bound", "通信瓶颈"),
    meaning=Words(
        "The accelerators hardly compute while a link runs near its line rate: the step takes as "
        "long as its communication.",
        "链路接近线速而加速器几乎不计算：步时由通信决定。",
    ),
    remedies=(CLIMB_DOWN, TRACE, LESS),
)
WAITING: Final = Cause(
    slug="accelerators-wait",
    title=Words("Accelerators wait, links are free", "加速器等待而链路空闲"),
    meaning=Words(
        "Neither computes nor communicates much: a late rank elsewhere, input, launches by a slow "
        "host, or a path too slow to fill the NIC.",
        "计算与通信都很低：其他 rank 落后、数据输入、主机下发慢，或路径太慢无法填满网卡。",
    ),
    remedies=(INPUT, CLIMB_DOWN),
)
RDMA_UNUSED: Final = Cause(
    slug="rdma-unused",
    title=Words("Traffic goes over TCP, not RDMA", "流量走 TCP 而非 RDMA"),
    meaning=Words(
        "The accelerators wait, the RDMA ports carry nothing, and sockets carry as much out as "
        "in: NCCL most likely fell back to TCP.",
        "加速器等待，RDMA 端口无流量，而套接字双向流量相当：NCCL 很可能退回 TCP。",
    ),
    remedies=(LOGS, CLIMB_DOWN),
)
