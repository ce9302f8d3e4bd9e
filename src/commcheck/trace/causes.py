"""What a trace can show, and the setting that mends it, by the framework's own name of it.

Sources of the settings: PyTorch DistributedDataParallel, FullyShardedDataParallel and fully_shard,
DeepSpeed configuration JSON, Megatron-LM arguments.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import known_to
from commcheck.model import Cause, Remedy, Words

TITLE: Final = Words("Communication in a profiler trace", "性能跟踪中的通信")
CHECK_ID: Final = "runtime.trace"

_BEFORE = Words(
    "A restart from a checkpoint; profile again and compare the two traces.",
    "从检查点重启后生效；请重新采样并对比两份跟踪。",
)
_READS = Words("None, it only looks.", "无，只读。")


def _set(
    command: str, en: str, zh: str, *, before: Words = _BEFORE, accelerator: str = ""
) -> Remedy:
    return Remedy(
        command=command, effect=Words(en, zh), precondition=before, accelerator=accelerator
    )


DDP_BUCKETS = _set(
    "DistributedDataParallel(model, bucket_cap_mb=25)",
    "DDP: larger buckets mean fewer all-reduces, smaller ones start earlier. The default None is "
    "1 MiB first, then 25; an explicit value holds for the first bucket too.",
    "DDP：桶越大集合通信越少，桶越小开始得越早。"
    "默认 None 为首桶 1 MiB、其余 25 MiB；显式值对首桶同样生效。",
)
DDP_VIEW = _set(
    "DistributedDataParallel(model, gradient_as_bucket_view=True, static_graph=True)",
    "DDP: no copy of gradients out of the buckets; a static graph needs no search for unused "
    "parameters, which delays the first bucket.",
    "DDP：省去梯度从桶中拷出；静态图无需查找未使用参数，首桶不再推迟。",
    before=Words(
        "The set of used parameters does not change between steps.", "各步使用的参数集合不变。"
    ),
)
FSDP_PREFETCH = _set(
    "FullyShardedDataParallel(backward_prefetch=BackwardPrefetch.BACKWARD_PRE, "
    "forward_prefetch=True, limit_all_gathers=True)",
    "FSDP1: gathers the next unit while this one computes. Costs the memory of one more unit.",
    "FSDP1：计算当前单元时预取下一单元，代价是多占一个单元的显存。",
)
FSDP2_PREFETCH = _set(
    "set_modules_to_forward_prefetch / set_modules_to_backward_prefetch",
    "FSDP2: gathers the named modules one layer ahead. Wrap each transformer block with "
    "fully_shard, neither single linears nor the whole model.",
    "FSDP2：提前一层预取指定模块。对每个 transformer 块调用 fully_shard，"
    "不要只包单个线性层或整个模型。",
)
DEEPSPEED_OVERLAP = _set(
    '"overlap_comm": true, "contiguous_gradients": true',
    "DeepSpeed: reduces gradients on a stream of its own during the backward. Needs two buckets "
    "of memory (4.5 x reduce_bucket_size bytes).",
    "DeepSpeed：反向期间在独立流上归约梯度，需要两个桶的显存。",
)
DEEPSPEED_BUCKET = _set(
    '"reduce_bucket_size": 5e7, "allgather_bucket_size": 5e7',
    "DeepSpeed: these count elements, not bytes. One that holds the whole model leaves nothing to "
    "overlap; a very small one is bound by latency.",
    "DeepSpeed：单位是元素个数而非字节。桶大到装下整个模型则无从重叠，过小则受延迟限制。",
)
ZERO3_PREFETCH = _set(
    '"stage3_prefetch_bucket_size": 5e8, "stage3_param_persistence_threshold": 1e6',
    "ZeRO-3: gathers further ahead (in elements), and keeps small parameters whole. Costs memory.",
    "ZeRO-3：更早预取（单位为元素），小参数常驻不切分；代价是显存。",
)
ZERO3_HPZ = _set(
    '"zero_hpz_partition_size": 8',
    "ZeRO++: a second shard inside the host, so that the gather stays on NVLink. Take the number "
    "of GPUs of a host. Costs memory for one more copy of the weights per host.",
    "ZeRO++：在主机内再存一份分片，all-gather 只走 NVLink。"
    "取每台主机的 GPU 数；代价是每台多一份权重。",
    accelerator="gpu",  # NVLink
)
ZERO3_STAGE = _set(
    '"stage": 2, or a larger "train_micro_batch_size_per_gpu"',
    "Stage 2 gathers no parameters in forward and backward; a larger micro batch computes longer "
    "over the same gather.",
    "阶段 2 前后向不再收集参数；更大的微批使同样的收集有更长的计算来掩盖。",
    before=Words("The optimizer states and the weights fit.", "显存放得下权重与优化器状态。"),
)
MEGATRON_OVERLAP = _set(
    "--overlap-grad-reduce --overlap-param-gather --use-distributed-optimizer",
    "Megatron: reduces gradients during the backward and gathers parameters during the forward. "
    "Without the first there are no buckets at all.",
    "Megatron：反向期间归约梯度、前向期间收集参数。没有前一个选项就完全不分桶。",
)
MEGATRON_BUCKET = _set(
    "--ddp-bucket-size 40000000",
    "Megatron: elements, not bytes; the default grows with the data-parallel size. Needs "
    "--overlap-grad-reduce.",
    "Megatron：单位为元素而非字节，默认值随数据并行规模增大；须配合 --overlap-grad-reduce。",
)
CONNECTIONS = _set(
    "export CUDA_DEVICE_MAX_CONNECTIONS=1",
    "Megatron with tensor or sequence parallelism before Blackwell: launches communication ahead "
    "of the computing that should hide it. FSDP wants it unset.",
    "Megatron 张量/序列并行（Blackwell 之前）：使通信先于用来掩盖它的计算下发。FSDP 则不应设置。",
    accelerator="gpu",
)
TENSOR_OVERLAP = _set(
    "--sequence-parallel --tp-comm-overlap",
    "Megatron: splits the collectives and overlaps them with their GEMMs.",
    "Megatron：拆分集合通信并与矩阵乘重叠。",
    accelerator="gpu",  # Transformer Engine
)
CLIMB_DOWN = _set(
    "commcheck run -i INVENTORY",
    "Judges NICs, PFC, PCIe and NCCL of these hosts: the wire is judged below, not here.",
    "检查这些主机的网卡、PFC、PCIe 与 NCCL：链路问题在下层判定。",
    before=_READS,
)
PREDICT = _set(
    "commcheck analyze bucket <TRACE> <SWEEP>",
    "Predicts from this trace and a sweep of the wire which bucket size is best for this model, "
    "what it brings, and whether any brings anything.",
    "根据本跟踪与链路测试结果预测最适合该模型的桶大小、收益，以及调桶是否有用。",
    before=_READS,
)
_DRAINED = Words("The hosts are drained: it loads the fabric.", "主机已排空：该测试会占满网络。")
MEASURE_WIRE = _set(
    "all_reduce_perf -b 8 -e 1G -f 2 -g 1",
    "Measures what the wire gives without training; commcheck analyze sweep judges the table.",
    "测量无训练负载时的链路带宽；用 commcheck analyze sweep 判读结果表。",
    before=_DRAINED,
    accelerator="gpu",
)
MEASURE_HCCL = _set(
    "mpirun -n <NPUS> all_reduce_test -b 8K -e 1G -f 2 -p <NPUS_A_HOST>",
    "Ascend: measures what HCCL gives without training; commcheck analyze sweep judges the table.",
    "昇腾：测量无训练负载时 HCCL 的带宽；用 commcheck analyze sweep 判读结果表。",
    before=_DRAINED,
    accelerator="npu",
)
GPU_CLOCKS = _set(
    "nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,ECC",
    "On the late rank's host: throttling, heat, ECC, another process. Compare with a peer.",
    "在迟到 rank 的主机上查看降频、温度、ECC 与其他进程，并与同伴对比。",
    before=_READS,
    accelerator="gpu",
)
NPU_CLOCKS = _set(
    "npu-smi info -t common -i <NPU>; npu-smi info -t health -i <NPU> -c <CHIP>",
    "Ascend, on the late rank's host: clock, heat, power and alarms. Compare with a peer.",
    "昇腾：在迟到 rank 的主机上查看频率、温度、功耗与告警，并与同伴对比。",
    before=_READS,
    accelerator="npu",
)
NPU_LAUNCHES = _set(
    "export TASK_QUEUE_ENABLE=2 CPU_AFFINITY_CONF=2",
    "Ascend: torch_npu launches in two stages, its busy threads on cores of their own. Takes more "
    "memory at its peak.",
    "昇腾：torch_npu 两级流水下发，热点线程独占 CPU 核；显存峰值会略增。",
    accelerator="npu",
)
HOST_STACKS = _set(
    "py-spy top --pid PID",
    "Shows what the training thread does between launches: logging, .item(), data loading.",
    "查看训练线程在下发间隙做什么：日志、.item()、数据加载。",
    before=_READS,
)

STRAGGLER = Cause(
    slug="trace-straggler",
    title=Words("One rank is late, the others wait", "单个 rank 迟到，其余等待"),
    meaning=Words(
        "A rank starts its collectives later than all others and spends the least time in them: "
        "the communication time of the others is waiting. Its own computing is slow (clocks, heat, "
        "another process, more work), or its host feeds it slowly.",
        "某个 rank 总是最后进入集合通信且通信耗时最短：其他 rank 的通信时间其实是等待。"
        "原因是该 rank 计算慢（降频、过热、被占用、工作量大）或主机下发慢。",
    ),
    remedies=(
        GPU_CLOCKS,
        NPU_CLOCKS,
        HOST_STACKS,
        _set(
            "torch.utils.data.DistributedSampler, and equal sequence lengths per rank",
            "Where clocks are equal the work is not: balance batches, check its data loader.",
            "若频率一致则是工作量不均：均衡各 rank 的批次并检查数据加载。",
        ),
        CLIMB_DOWN,
    ),
)
LAUNCH_BOUND = Cause(
    slug="trace-launch-bound",
    title=Words("The host launches too slowly", "主机下发内核过慢"),
    meaning=Words(
        "The device waits for launches: kernels are shorter than the call that starts them. This "
        "is not communication; a faster network changes nothing.",
        "设备在等待内核下发：内核比启动它的调用还短。这不是通信问题，换更快的网络也没有用。",
    ),
    remedies=(
        _set(
            'torch.compile(model, mode="reduce-overhead")',
            "Fuses small kernels and replays them as CUDA graphs: one launch for many kernels.",
            "融合小内核并以 CUDA graph 重放：一次下发多个内核。",
            before=Words("Static shapes, or few of them.", "形状固定，或只有少数几种。"),
        ),
        _set(
            "a larger micro batch; foreach=True or fused=True in the optimizer",
            "Longer kernels for the same number of launches.",
            "同样的下发次数，内核更长。",
        ),
        HOST_STACKS,
    ),
)
IDLE = Cause(
    slug="trace-idle",
    title=Words("The device is idle", "设备空闲"),
    meaning=Words(
        "For much of the step the device neither computes nor communicates. Mostly it waits for "
        "its host: launches, data loading, a synchronising call. A faster network changes nothing.",
        "每步有相当部分时间设备既不计算也不通信。多半在等主机：算子下发、数据加载或同步调用。"
        "换更快的网络没有用。",
    ),
    remedies=(
        HOST_STACKS,
        _set(
            "MindStudio Insight, or Perfetto, on a trace with ProfilerActivity.CPU",
            "Shows what the host did in each gap: lines from launch to kernel that stand upright "
            "mean that the device waited for the launch.",
            "查看每个空隙中主机在做什么：下发连线若竖直，说明设备在等待下发。",
            before=_READS,
        ),
        NPU_LAUNCHES,
    ),
)
GATHER_BOUND = Cause(
    slug="trace-gather-bound",
    title=Words("Forward waits for ZeRO-3 all-gather", "前向等待 ZeRO-3 参数收集"),
    meaning=Words(
        "The forward pass waits for its own weights: the all-gather of sharded parameters is not "
        "prefetched far enough, or there is too little computing to hide it.",
        "前向在等待自己的权重：切分参数的 all-gather 预取得不够早，或计算太少不足以掩盖。",
    ),
    remedies=(ZERO3_PREFETCH, ZERO3_HPZ, ZERO3_STAGE, FSDP2_PREFETCH, FSDP_PREFETCH),
)
SMALL_COLLECTIVES = Cause(
    slug="trace-small-collectives",
    title=Words("Many small collectives: latency-bound", "大量小集合通信：受延迟限制"),
    meaning=Words(
        "Most communication time is start-up cost, paid once per collective: the messages are too "
        "small for the bandwidth to matter.",
        "通信时间大部分是每次集合通信的启动开销：消息太小，带宽不起作用。",
    ),
    remedies=(DDP_BUCKETS, DEEPSPEED_BUCKET, MEGATRON_BUCKET, ZERO3_PREFETCH, FSDP2_PREFETCH),
)
NOT_OVERLAPPED = Cause(
    slug="trace-not-overlapped",
    title=Words("Communication does not overlap", "通信未与计算重叠"),
    meaning=Words(
        "Communication runs after the computing instead of beneath it. Usually one bucket holds "
        "all gradients, overlap is off, or the backward waits for each collective.",
        "通信在计算之后而不是同时进行。通常是单个桶装下全部梯度、未开启重叠，或反向逐个等待通信。",
    ),
    remedies=(
        DDP_BUCKETS,
        DDP_VIEW,
        DEEPSPEED_OVERLAP,
        DEEPSPEED_BUCKET,
        MEGATRON_OVERLAP,
        FSDP2_PREFETCH,
        FSDP_PREFETCH,
        CONNECTIONS,
    ),
)
SLOW_WIRE = Cause(
    slug="trace-slow-wire",
    title=Words("The wire is slower than measured", "链路低于实测带宽"),
    meaning=Words(
        "Even without late ranks the large collectives move less than the same fabric was measured "
        "to give: the fault lies below, or other traffic shares the links.",
        "排除等待后，大消息的带宽仍低于该网络的实测值：问题在下层，或链路被其他流量占用。",
    ),
    remedies=(CLIMB_DOWN, MEASURE_WIRE, MEASURE_HCCL),
)
TENSOR_PARALLEL = Cause(
    slug="trace-tensor-parallel",
    title=Words("Tensor-parallel collectives exposed", "张量并行通信暴露"),
    meaning=Words(
        "Collectives inside a layer cannot hide: the next operation needs their result. Buckets do "
        "not change them. Compare their busbw with a sweep inside the host.",
        "层内集合通信无法隐藏：下一个算子要用其结果，与桶大小无关。请与主机内的带宽测试对比。",
    ),
    remedies=(
        _set(
            "--tensor-model-parallel-size N, no larger than the GPUs or NPUs of one host",
            "Megatron: keeps tensor parallelism on NVLink or HCCS.",
            "Megatron：使张量并行只走 NVLink 或 HCCS。",
        ),
        TENSOR_OVERLAP,
        MEASURE_WIRE,
        MEASURE_HCCL,
    ),
)
PIPELINE_BUBBLE = Cause(
    slug="trace-pipeline-bubble",
    title=Words("Pipeline stages wait for each other", "流水线各级互相等待"),
    meaning=Words(
        "Send and receive kernels wait for the neighbouring stage: a bubble, not bandwidth.",
        "send/recv 内核在等待相邻流水级：这是气泡，不是带宽问题。",
    ),
    remedies=(
        _set(
            "--global-batch-size larger, or --micro-batch-size smaller",
            "More micro batches per step: the bubble is (p - 1) / m of the step.",
            "增加每步的微批数：气泡占 (p-1)/m。",
        ),
        _set(
            "--num-layers-per-virtual-pipeline-stage N",
            "Megatron: interleaved stages divide the bubble; balance layers between stages.",
            "Megatron：交错流水线按份数缩小气泡；并均衡各级层数。",
        ),
    ),
)
EXPOSED = Cause(
    slug="trace-exposed",
    title=Words("Exposed communication", "通信暴露"),
    meaning=Words(
        "Nothing computes while the job communicates, for a large part of each step, though most "
        "of the communication does overlap: there is too much of it, or its last part is long.",
        "每步有相当部分时间只有通信而无计算，尽管多数通信已重叠：通信量过大，或最后一段过长。",
    ),
    remedies=(
        PREDICT,
        DDP_BUCKETS,
        DEEPSPEED_BUCKET,
        MEGATRON_BUCKET,
        FSDP2_PREFETCH,
        FSDP_PREFETCH,
        _set(
            "gradient accumulation (no_sync), or a larger micro batch",
            "More computing for the same communication.",
            "同样的通信量，更多的计算。",
        ),
        MEASURE_WIRE,
        MEASURE_HCCL,
    ),
)

CAUSES: Final = (
    STRAGGLER,
    LAUNCH_BOUND,
    IDLE,
    GATHER_BOUND,
    SMALL_COLLECTIVES,
    NOT_OVERLAPPED,
    SLOW_WIRE,
    TENSOR_PARALLEL,
    PIPELINE_BUBBLE,
    EXPOSED,
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


def remedies_for(cause: Cause, framework: str, *, is_npu: bool) -> tuple[Remedy, ...]:
    """The cause's remedies for these devices, without those of other frameworks where the trace
    tells which it is.

    All of them where that would leave none.
    """
    remedies = known_to("npu" if is_npu else "gpu", cause.remedies)
    for name in (framework, *_PART_OF.get(framework, ())):
        mine = tuple(
            remedy
            for remedy in remedies
            if name in _OF and (remedy not in _ALL_OF or remedy in _OF[name])
        )
        if mine:
            return mine
    return remedies
