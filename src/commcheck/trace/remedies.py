"""Settings and commands that mend what a trace shows, by the frameworks' own names of them.

Sources: PyTorch DistributedDataParallel, FullyShardedDataParallel and fully_shard, DeepSpeed
configuration JSON, Megatron-LM arguments; npu-smi and hccl_test of CANN.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import known_to
from commcheck.frameworks import causes
from commcheck.model import Cause, Remedy, Words

RESTART = Words(
    "A restart from a checkpoint; profile again and compare the two traces.",
    "从检查点重启后生效；请重新采样并对比两份跟踪。",
)
DRAINED = Words("The hosts are drained: it loads the fabric.", "主机已排空：该测试会占满网络。")
READS = Words("None, it only looks.", "无，只读。")


def setting(
    command: str, en: str, zh: str, *, before: Words = RESTART, accelerator: str = ""
) -> Remedy:
    """What the operator sets or runs; ``accelerator``: the only kind that it is for."""
    return Remedy(
        command=command, effect=Words(en, zh), precondition=before, accelerator=accelerator
    )


DDP_BUCKETS = setting(
    "DistributedDataParallel(model, bucket_cap_mb=25)",
    "DDP: larger buckets mean fewer all-reduces, smaller ones start earlier. The default None is "
    "1 MiB first, then 25; an explicit value holds for the first bucket too.",
    "DDP：桶越大集合通信越少，桶越小开始得越早。"
    "默认 None 为首桶 1 MiB、其余 25 MiB；显式值对首桶同样生效。",
)
DDP_VIEW = setting(
    "DistributedDataParallel(model, gradient_as_bucket_view=True, find_unused_parameters=False)",
    "DDP: no copy of gradients out of the buckets, and no search for unused parameters, which "
    "delays the first bucket.",
    "DDP：省去梯度从桶中拷出，也不查找未使用的参数，首桶不再推迟。",
    before=Words(
        "Every step uses every parameter; else DDP ends with an error.",
        "每步都用到所有参数；否则 DDP 报错退出。",
    ),
)
FSDP_PREFETCH = setting(
    "FullyShardedDataParallel(backward_prefetch=BackwardPrefetch.BACKWARD_PRE, "
    "forward_prefetch=True, limit_all_gathers=True)",
    "FSDP1: gathers the next unit while this one computes. Costs the memory of one more unit. "
    "forward_prefetch only where each step runs the same units in the same order.",
    "FSDP1：计算当前单元时预取下一单元，代价是多占一个单元的显存。forward_prefetch 仅适用于"
    "每步以相同顺序执行相同单元的模型。",
)
FSDP2_PREFETCH = setting(
    "set_modules_to_forward_prefetch / set_modules_to_backward_prefetch",
    "FSDP2: gathers the named modules one layer ahead. Wrap each transformer block with "
    "fully_shard, neither single linears nor the whole model.",
    "FSDP2：提前一层预取指定模块。对每个 transformer 块调用 fully_shard，"
    "不要只包单个线性层或整个模型。",
)
DEEPSPEED_OVERLAP = setting(
    '"overlap_comm": true, "contiguous_gradients": true',
    "DeepSpeed: reduces gradients on a stream of its own during the backward. Takes 4.5 times the "
    "bucket's bytes; reduce_bucket_size counts elements.",
    "DeepSpeed：反向期间在独立流上归约梯度，占用约 4.5 倍桶字节的显存"
    "（reduce_bucket_size 的单位是元素个数）。",
    before=causes.DEEPSPEED_OVERLAP.precondition,
)
DEEPSPEED_BUCKET = setting(
    '"reduce_bucket_size": 5e7, "allgather_bucket_size": 5e7',
    "DeepSpeed: these count elements, not bytes. One that holds the whole model leaves nothing to "
    "overlap; a very small one is bound by latency.",
    "DeepSpeed：单位是元素个数而非字节。桶大到装下整个模型则无从重叠，过小则受延迟限制。",
)
ZERO3_PREFETCH = setting(
    '"stage3_prefetch_bucket_size": 5e8, "stage3_param_persistence_threshold": 1e6',
    "ZeRO-3: gathers further ahead (in elements), and keeps small parameters whole. Costs memory.",
    "ZeRO-3：更早预取（单位为元素），小参数常驻不切分；代价是显存。",
)
ZERO3_HPZ = setting(
    '"zero_hpz_partition_size": 8',
    "ZeRO++: a second shard inside the host, so that the gather stays on NVLink. Take the number "
    "of GPUs of a host. Costs memory for one more copy of the weights per host.",
    "ZeRO++：在主机内再存一份分片，all-gather 只走 NVLink。"
    "取每台主机的 GPU 数；代价是每台多一份权重。",
    accelerator="gpu",  # NVLink
)
ZERO3_STAGE = setting(
    '"stage": 2, or a larger "train_micro_batch_size_per_gpu"',
    "Stage 2 gathers no parameters in forward and backward; a larger micro batch computes longer "
    "over the same gather.",
    "阶段 2 前后向不再收集参数；更大的微批使同样的收集有更长的计算来掩盖。",
    before=Words("The optimizer states and the weights fit.", "显存放得下权重与优化器状态。"),
)
MEGATRON_OVERLAP = setting(
    "--overlap-grad-reduce --overlap-param-gather --use-distributed-optimizer",
    "Megatron: reduces gradients during the backward and gathers parameters during the forward. "
    "Without the first there are no buckets at all.",
    "Megatron：反向期间归约梯度、前向期间收集参数。没有前一个选项就完全不分桶。",
    before=causes.MEGATRON_OVERLAP.precondition,
)
MEGATRON_BUCKET = setting(
    "--ddp-bucket-size 40000000",
    "Megatron: elements, not bytes; the default grows with the data-parallel size. Needs "
    "--overlap-grad-reduce.",
    "Megatron：单位为元素而非字节，默认值随数据并行规模增大；须配合 --overlap-grad-reduce。",
)
CONNECTIONS = setting(
    "export CUDA_DEVICE_MAX_CONNECTIONS=1",
    "Megatron with tensor or sequence parallelism before Blackwell: launches communication ahead "
    "of the computing that should hide it. FSDP wants it unset.",
    "Megatron 张量/序列并行（Blackwell 之前）：使通信先于用来掩盖它的计算下发。FSDP 则不应设置。",
    accelerator="gpu",
)
TENSOR_OVERLAP = setting(
    "--sequence-parallel --tp-comm-overlap",
    "Megatron: splits the collectives and overlaps them with their GEMMs.",
    "Megatron：拆分集合通信并与矩阵乘重叠。",
    accelerator="gpu",  # Transformer Engine
)
CLIMB_DOWN = setting(
    "commcheck run -i INVENTORY",
    "Judges NICs, PFC, PCIe and NCCL of these hosts: the wire is judged below, not here.",
    "检查这些主机的网卡、PFC、PCIe 与 NCCL：链路问题在下层判定。",
    before=READS,
)
PREDICT = setting(
    "commcheck analyze bucket <TRACE> <SWEEP>",
    "Predicts from this trace and a sweep of the wire which bucket size is best for this model, "
    "what it brings, and whether any brings anything.",
    "根据本跟踪与链路测试结果预测最适合该模型的桶大小、收益，以及调桶是否有用。",
    before=READS,
)
MEASURE_WIRE = setting(
    "all_reduce_perf -b 8 -e 1G -f 2 -g 1",
    "Measures what the wire gives without training; commcheck analyze sweep judges the table.",
    "测量无训练负载时的链路带宽；用 commcheck analyze sweep 判读结果表。",
    before=DRAINED,
    accelerator="gpu",
)
MEASURE_HCCL = setting(
    "mpirun -n <NPUS> all_reduce_test -b 8K -e 1G -f 2 -p <NPUS_A_HOST>",
    "Ascend: measures what HCCL gives without training; commcheck analyze sweep judges the table.",
    "昇腾：测量无训练负载时 HCCL 的带宽；用 commcheck analyze sweep 判读结果表。",
    before=DRAINED,
    accelerator="npu",
)
GPU_CLOCKS = setting(
    "nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,ECC",
    "On the late rank's host: throttling, heat, ECC, another process. Compare with a peer.",
    "在迟到 rank 的主机上查看降频、温度、ECC 与其他进程，并与同伴对比。",
    before=READS,
    accelerator="gpu",
)
NPU_CLOCKS = setting(
    "npu-smi info -t common -i <NPU>; npu-smi info -t health -i <NPU> -c <CHIP>",
    "Ascend, on the late rank's host: clock, heat, power and alarms. Compare with a peer.",
    "昇腾：在迟到 rank 的主机上查看频率、温度、功耗与告警，并与同伴对比。",
    before=READS,
    accelerator="npu",
)
CORES = setting(
    "top -H; lscpu -e=CPU,MAXMHZ,MHZ",
    "On the late rank's host: other threads on its cores, and how fast they run. Compare with a "
    "peer.",
    "在迟到 rank 的主机上查看同核的其他线程与各核频率，并与同伴对比。",
    before=READS,
)
NPU_LINKS = setting(
    "hccn_tool -i <NPU> -stat -g; hccn_tool -i <NPU> -link_stat -g; hccn_tool -i <NPU> -optical -g",
    "Ascend, on this rank's host and its peers': packets that were lost or sent again, links that "
    "went down, light. HCCS: npu-smi info -t topo.",
    "昇腾：在该 rank 及其对端主机上查看丢包与重传、链路闪断、光功率；"
    "HCCS 看 npu-smi info -t topo。",
    before=READS,
    accelerator="npu",
)
NPU_LAUNCHES = setting(
    "export TASK_QUEUE_ENABLE=2 CPU_AFFINITY_CONF=2",
    "Ascend: torch_npu launches in two stages, its busy threads on cores of their own. Takes more "
    "memory at its peak.",
    "昇腾：torch_npu 两级流水下发，热点线程独占 CPU 核；显存峰值会略增。",
    accelerator="npu",
)
HOST_STACKS = setting(
    "py-spy top --pid PID",
    "Shows what the training thread does between launches: logging, .item(), data loading.",
    "查看训练线程在下发间隙做什么：日志、.item()、数据加载。",
    before=READS,
)

_OF: Final = {
    "DDP": (DDP_BUCKETS, DDP_VIEW),
    "FSDP": (FSDP_PREFETCH,),
    "FSDP2": (FSDP2_PREFETCH,),
    "DeepSpeed": (DEEPSPEED_OVERLAP, DEEPSPEED_BUCKET),
    "ZeRO-3": (ZERO3_PREFETCH, ZERO3_HPZ, ZERO3_STAGE, DEEPSPEED_OVERLAP),
    "Megatron": (MEGATRON_OVERLAP, MEGATRON_BUCKET, CONNECTIONS),
}
_PART_OF: Final = {"DeepSpeed": ("ZeRO-3",)}
"""What may be at work where a trace tells the whole alone."""
_ALL_OF: Final = frozenset(remedy for mine in _OF.values() for remedy in mine)


def remedies_for(cause: Cause, framework: str, accelerator: str) -> tuple[Remedy, ...]:
    """The cause's remedies for these devices, without those of other frameworks where the trace
    tells which it is.

    All of them where that would leave none. ``accelerator``: "gpu", "npu", or "" for CPUs.
    """
    remedies = known_to(accelerator, cause.remedies)
    for name in (framework, *_PART_OF.get(framework, ())):
        mine = tuple(
            remedy
            for remedy in remedies
            if name in _OF and (remedy not in _ALL_OF or remedy in _OF[name])
        )
        if mine:
            return mine
    return remedies
