"""What a trace can show, and what mends it."""

from __future__ import annotations

from typing import Final

from commcheck.model import Cause, Words
from commcheck.trace.remedies import (
    CLIMB_DOWN,
    CONNECTIONS,
    CORES,
    DDP_BUCKETS,
    DDP_VIEW,
    DEEPSPEED_BUCKET,
    DEEPSPEED_OVERLAP,
    DRAINED,
    FSDP2_PREFETCH,
    FSDP_PREFETCH,
    GPU_CLOCKS,
    HOST_STACKS,
    MEASURE_HCCL,
    MEASURE_WIRE,
    MEGATRON_BUCKET,
    MEGATRON_OVERLAP,
    NPU_CLOCKS,
    NPU_LAUNCHES,
    NPU_LINKS,
    PREDICT,
    READS,
    TENSOR_OVERLAP,
    ZERO3_HPZ,
    ZERO3_PREFETCH,
    ZERO3_STAGE,
    setting,
)

TITLE: Final = Words("Communication in a profiler trace", "性能跟踪中的通信")
CHECK_ID: Final = "runtime.trace"

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
        CORES,
        HOST_STACKS,
        setting(
            "torch.utils.data.DistributedSampler, and equal sequence lengths per rank",
            "Where clocks are equal the work is not: balance batches, check its data loader.",
            "若频率一致则是工作量不均：均衡各 rank 的批次并检查数据加载。",
        ),
        CLIMB_DOWN,
    ),
)
INPUT_BOUND = Cause(
    slug="trace-input-bound",
    title=Words("The step waits for its input", "训练步在等待输入数据"),
    meaning=Words(
        "The device has done its work, and the training thread waits for the next batch: workers "
        "that read, decode or transform it are too few or too slow, or storage is. This is not "
        "communication, and faster kernels only wait longer.",
        "设备已完成工作，训练线程在等待下一批数据：读取、解码或变换数据的 worker 太少或太慢，"
        "或存储太慢。这不是通信问题，内核更快只会等得更久。",
    ),
    remedies=(
        setting(
            "py-spy dump --pid PID",
            "Of a worker of the DataLoader: whether it reads, decodes, or has nothing to do.",
            "对 DataLoader 的 worker 进程：查看它在读取、解码还是空闲。",
            before=READS,
        ),
        setting(
            "iostat -x 1 5; nfsiostat 1 5",
            "Shows whether the disk or the file server that holds the data is busy or slow.",
            "查看存放数据的磁盘或文件服务器是否繁忙或缓慢。",
            before=READS,
        ),
        setting(
            "DataLoader(num_workers=N, prefetch_factor=4, persistent_workers=True, "
            "pin_memory=True)",
            "More workers fetch further ahead, and live on between epochs; pinned memory is copied "
            "beneath the computing.",
            "更多 worker 提前取数，并在各 epoch 间常驻；锁页内存可与计算同时拷贝。",
            before=Words(
                "N workers for each rank fit the host's cores and memory; a restart from a "
                "checkpoint.",
                "每个 rank N 个 worker 不超过主机的核数与内存；从检查点重启。",
            ),
        ),
    ),
)
HOST_PAUSE = Cause(
    slug="trace-host-pause",
    title=Words("The host pauses between launches", "主机在下发之间停顿"),
    meaning=Words(
        "In a few long gaps the device has nothing to do, since the training thread does something "
        "else: it fetches data without a DataLoader, evaluates, saves, logs, collects garbage, or "
        "waits for another program. Kernels are long enough: compiling gains nothing.",
        "设备在少数较长的空隙中无事可做，因为训练线程在做别的：不经 DataLoader 取数、评估、保存、"
        "记日志、垃圾回收，或等待其他程序。内核足够长，编译没有收益。",
    ),
    remedies=(
        HOST_STACKS,
        setting(
            "torch.profiler.profile(with_stack=True, ...)",
            "Perfetto then shows the Python functions above the gap.",
            "之后 Perfetto 会在空隙上方显示 Python 函数。",
        ),
        setting(
            "--manual-gc --manual-gc-interval 100, or gc.disable() and gc.collect() every N steps",
            "Megatron, and anywhere: all ranks collect garbage at the same step, not by turns.",
            "Megatron 及其他：各 rank 在同一步做垃圾回收，而不是轮流。",
        ),
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
        setting(
            'torch.compile(model, mode="reduce-overhead")',
            "Fuses small kernels and replays them as CUDA graphs: one launch for many kernels.",
            "融合小内核并以 CUDA graph 重放：一次下发多个内核。",
            before=Words("Static shapes, or few of them.", "形状固定，或只有少数几种。"),
            accelerator="gpu",
        ),
        setting(
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
        setting(
            "MindStudio Insight, or Perfetto, on a trace with ProfilerActivity.CPU",
            "Shows what the host did in each gap: lines from launch to kernel that stand upright "
            "mean that the device waited for the launch.",
            "查看每个空隙中主机在做什么：下发连线若竖直，说明设备在等待下发。",
            before=READS,
        ),
        NPU_LAUNCHES,
        NPU_LINKS,
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
SLOW_LINK = Cause(
    slug="trace-slow-link",
    title=Words("Links of one rank are slower", "个别 rank 的链路偏慢"),
    meaning=Words(
        "By HCCL's own times, which hold no waiting, this rank moves less than its peers over the "
        "same kind of link: its port, module, cable or switch port, or those of the other end.",
        "按 HCCL 自身统计（不含对迟到 rank 的等待），该 rank 在同类链路上的带宽低于其他 rank："
        "问题在其网口、光模块、线缆或交换机端口，或在对端 NPU。",
    ),
    remedies=(NPU_LINKS, CLIMB_DOWN, MEASURE_HCCL),
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
        setting(
            "--tensor-model-parallel-size N, no larger than the GPUs or NPUs of one host",
            "Megatron: keeps tensor parallelism on NVLink or HCCS.",
            "Megatron：使张量并行只走 NVLink 或 HCCS。",
        ),
        TENSOR_OVERLAP,
        MEASURE_WIRE,
        MEASURE_HCCL,
    ),
)
EXPERT_PARALLEL = Cause(
    slug="trace-expert-parallel",
    title=Words("Expert-parallel communication exposed", "专家并行通信暴露"),
    meaning=Words(
        "Tokens travel to their experts and back while nothing computes. Bucket sizes do not "
        "change it: experts inside the host, or the computing of another micro batch above it, do.",
        "token 往返专家期间没有计算。与桶大小无关：把专家放在主机内，或用另一微批的计算来掩盖。",
    ),
    remedies=(
        setting(
            "--expert-model-parallel-size N, no larger than the GPUs that share NVLink or the NPUs "
            "that share HCCS; --expert-tensor-parallel-size 1",
            "Megatron: keeps the all-to-all off the network, and experts whole.",
            "Megatron：使 all-to-all 不经过网络，专家不再切分。",
        ),
        setting(
            "--overlap-moe-expert-parallel-comm --delay-wgrad-compute",
            "Megatron: dispatch and combine of one micro batch run beneath the computing of "
            "another.",
            "Megatron：一个微批的分发与合并在另一微批的计算之下进行。",
            before=Words(
                "bf16 or fp16, torch 2.6; no full recomputation, no "
                "--moe-shared-expert-overlap; virtual stages where there are pipeline stages.",
                "bf16 或 fp16，torch 2.6；未用全量重算与 --moe-shared-expert-overlap；"
                "有流水线时须有虚拟级。",
            ),
            accelerator="gpu",  # Transformer Engine
        ),
        setting(
            "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep",
            "Megatron: DeepEP sends a token once to a host and spreads it there over NVLink.",
            "Megatron：DeepEP 对每台主机只发送一次 token，再经 NVLink 分发。",
            before=Words("DeepEP is installed, with NVSHMEM.", "已安装 DeepEP 与 NVSHMEM。"),
            accelerator="gpu",
        ),
        setting(
            "alltoall_perf -b 1M -e 1G -f 2 -g 1",
            "Measures what the wire gives an all-to-all; commcheck analyze sweep judges the table.",
            "测量链路能给 all-to-all 的带宽；用 commcheck analyze sweep 判读结果表。",
            before=DRAINED,
            accelerator="gpu",
        ),
        setting(
            "mpirun -n <NPUS> alltoall_test -b 1M -e 1G -f 2 -p <NPUS_A_HOST>",
            "Ascend: measures what HCCL gives an all-to-all; commcheck analyze sweep judges the "
            "table.",
            "昇腾：测量 HCCL 能给 all-to-all 的带宽；用 commcheck analyze sweep 判读结果表。",
            before=DRAINED,
            accelerator="npu",
        ),
    ),
)
CONTEXT_PARALLEL = Cause(
    slug="trace-context-parallel",
    title=Words("Context-parallel communication exposed", "上下文并行通信暴露"),
    meaning=Words(
        "Keys and values of the other parts of the sequence arrive later than the attention needs "
        "them: each part is too short for what it has to hide, or the ring crosses the network. It "
        "is no pipeline bubble.",
        "序列其他部分的 K、V 到得比注意力计算晚：每段太短不足以掩盖，或环跨越了网络。"
        "这不是流水线气泡。",
    ),
    remedies=(
        setting(
            "--context-parallel-size N, no larger than the GPUs that share NVLink or the NPUs that "
            "share HCCS",
            "Megatron: keeps the ring off the network; and a longer part per rank computes more "
            "per hop, since attention grows with its square.",
            "Megatron：使环不经过网络；每个 rank 的段更长则每跳计算更多（注意力按平方增长）。",
            before=Words("The activations of the longer part fit.", "显存放得下更长一段的激活。"),
        ),
        setting(
            "--cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 8 N",
            "Megatron: all-to-all over the heads among the 8 GPUs of a host, the ring only "
            "between hosts.",
            "Megatron：主机内 8 卡按注意力头 all-to-all，仅主机间走环。",
            before=Words(
                "Transformer Engine 1.12; the heads of keys and values divide by 8.",
                "Transformer Engine 1.12；KV 头数可被 8 整除。",
            ),
            accelerator="gpu",
        ),
        setting(
            "sendrecv_perf -b 1M -e 1G -f 2 -g 1",
            "Measures what the wire gives a ring; commcheck analyze sweep judges the table.",
            "测量链路能给环的带宽；用 commcheck analyze sweep 判读结果表。",
            before=DRAINED,
            accelerator="gpu",
        ),
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
        setting(
            "--global-batch-size larger, or --micro-batch-size smaller",
            "More micro batches per step: the bubble is (p - 1) / m of the step.",
            "增加每步的微批数：气泡占 (p-1)/m。",
        ),
        setting(
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
        "Nothing computes while the job communicates, for a large part of each step, though it "
        "overlaps as far as it can: there is too much of it, too little computing, or its last "
        "part is long.",
        "每步有相当部分时间只有通信而无计算，尽管能重叠的已重叠：通信量过大、计算过少，"
        "或最后一段过长。",
    ),
    remedies=(
        PREDICT,
        DDP_BUCKETS,
        DEEPSPEED_BUCKET,
        MEGATRON_BUCKET,
        FSDP2_PREFETCH,
        FSDP_PREFETCH,
        setting(
            "gradient accumulation (no_sync), or a larger micro batch",
            "More computing for the same communication.",
            "同样的通信量，更多的计算。",
        ),
        MEASURE_WIRE,
        MEASURE_HCCL,
    ),
)

CAUSES: Final = (
    *(STRAGGLER, INPUT_BOUND, HOST_PAUSE, LAUNCH_BOUND, IDLE, GATHER_BOUND),
    *(SMALL_COLLECTIVES, NOT_OVERLAPPED, SLOW_WIRE, SLOW_LINK),
    *(TENSOR_PARALLEL, EXPERT_PARALLEL, CONTEXT_PARALLEL, PIPELINE_BUBBLE, EXPOSED),
)
