"""What settings of a training framework can get wrong, and what to set instead.

Sources: PyTorch DistributedDataParallel and FullyShardedDataParallel, DeepSpeed configuration JSON
(documentation and runtime/zero/config.py), Megatron-LM megatron/training/arguments.py.
"""

from __future__ import annotations

from typing import Final

from commcheck.model import Cause, Remedy, Words

BUCKETS: Final = "application.buckets"
OVERLAP: Final = "application.overlap"
ZERO: Final = "application.zero"
TITLES: Final = {
    BUCKETS: Words("Bucket sizes fit model and network", "桶大小适合模型与网络"),
    OVERLAP: Words("Communication may overlap computing", "通信可与计算重叠"),
    ZERO: Words("ZeRO and sharding settings", "ZeRO 与分片设置"),
}

RESTART = Words(
    "Takes effect with the next start of the job, from a checkpoint.",
    "作业下次从检查点启动时生效。",
)
MEMORY = Words(
    "The memory is free on every rank; the job restarts from a checkpoint.",
    "各 rank 显存充足；作业从检查点重启。",
)


def to_set(command: str, en: str, zh: str, before: Words = RESTART) -> Remedy:
    """A setting, what it does in both languages, and what must be so before."""
    return Remedy(command=command, effect=Words(en, zh), precondition=before)


# --- buckets ------------------------------------------------------------------------------------

DDP_BUCKET = to_set(
    "DistributedDataParallel(model, bucket_cap_mb={value})",
    "DDP: MiB. An explicit value holds for the first bucket too; None is 1 MiB first, then 25.",
    "DDP：单位 MiB。显式值对首桶同样生效；None 为首桶 1 MiB、其余 25 MiB。",
)
DEEPSPEED_BUCKET = to_set(
    '"reduce_bucket_size": {value}',
    "DeepSpeed: elements, not bytes. With overlap_comm it takes 4.5 times the bucket's bytes.",
    "DeepSpeed：单位为元素个数而非字节。启用 overlap_comm 时占用约 4.5 倍桶字节的显存。",
    MEMORY,
)
GATHER_BUCKET = to_set(
    '"allgather_bucket_size": {value}',
    "DeepSpeed: elements, not bytes. Parameters are gathered in such pieces after the step.",
    "DeepSpeed：单位为元素个数而非字节。步结束后按此大小分块收集参数。",
    MEMORY,
)
MEGATRON_BUCKET = to_set(
    "--ddp-bucket-size {value}",
    "Megatron: elements, not bytes; needs --overlap-grad-reduce. In DistributedDataParallelConfig "
    "it is bucket_size.",
    "Megatron：单位为元素个数而非字节；须配合 --overlap-grad-reduce。"
    "DistributedDataParallelConfig 中为 bucket_size。",
)
ADVISE = to_set(
    "commcheck analyze bucket TRACE SWEEP",
    "Predicts the step over bucket sizes from a profiler trace and a sweep, and names the best.",
    "根据性能跟踪与带宽测试预测各桶大小下的步时间，并给出最佳值。",
    Words("None, it only reads files.", "无，只读取文件。"),
)
FEWER_BYTES = to_set(
    "gradient_accumulation_steps, communication_data_type or a bf16 compression hook",
    "Communicates less often or fewer bytes: half the bytes take half the time. Accumulation helps "
    "DDP, Megatron and ZeRO-1; ZeRO-2 and 3 reduce gradients after every accumulated step.",
    "减少通信次数或字节数：字节减半则耗时减半。梯度累积对 DDP、Megatron、ZeRO-1 有效；"
    "ZeRO-2 与 3 每个累积步都要归约梯度。",
    Words(
        "Accumulation changes the global batch, compression the numbers: try the loss curve.",
        "累积会改变全局批大小，压缩会影响数值：请先验证损失曲线。",
    ),
)
CLIMB_DOWN = to_set(
    "commcheck run -i INVENTORY",
    "Judges whether the wire gives what it should, which is below this layer.",
    "检查链路是否达到应有带宽：属于更低的层。",
    Words("None, it only looks.", "无，只读。"),
)
VIEW = to_set(
    "DistributedDataParallel(model, gradient_as_bucket_view=True)",
    "DDP: gradients are views of the buckets: no copy back, and one copy of all gradients less.",
    "DDP：梯度直接是桶的视图：省去拷回，也少一份全部梯度的显存。",
)

TOO_SMALL = Cause(
    slug="bucket-too-small",
    title=Words("Buckets are too small", "桶过小"),
    meaning=Words(
        "Each collective pays its latency anew: many small ones take longer than few large ones.",
        "每次集合通信都要付一次延迟：许多小桶比少数大桶更慢。",
    ),
    remedies=(DDP_BUCKET, DEEPSPEED_BUCKET, GATHER_BUCKET, MEGATRON_BUCKET, ADVISE),
)
TOO_LARGE = Cause(
    slug="bucket-too-large",
    title=Words("Buckets are too large", "桶过大"),
    meaning=Words(
        "A bucket is sent when its last gradient is ready: a large one starts late, and what is "
        "left at the end of the backward pass is exposed.",
        "桶要等最后一个梯度就绪才发送：过大的桶开始得晚，反向结束后剩余部分无法掩盖。",
    ),
    remedies=(DDP_BUCKET, DEEPSPEED_BUCKET, MEGATRON_BUCKET, ADVISE),
)
WIRE_BOUND = Cause(
    slug="bucket-no-size-helps",
    title=Words("No bucket size hides the communication", "任何桶大小都无法掩盖通信"),
    meaning=Words(
        "All gradients together take longer on the wire than the backward pass takes.",
        "全部梯度的传输时间超过反向计算时间。",
    ),
    remedies=(FEWER_BYTES, CLIMB_DOWN),
)
UNIT = Cause(
    slug="bucket-size-unit",
    title=Words("A bucket size in the wrong unit", "桶大小的单位有误"),
    meaning=Words(
        "The number only makes sense in another unit: DDP counts MiB, DeepSpeed and Megatron count "
        "elements.",
        "该数值只有在另一种单位下才合理：DDP 为 MiB，DeepSpeed 与 Megatron 为元素个数。",
    ),
    remedies=(DDP_BUCKET, DEEPSPEED_BUCKET, GATHER_BUCKET, MEGATRON_BUCKET),
)
COPIES = Cause(
    slug="bucket-copies",
    title=Words("Gradients are copied out of the buckets", "梯度从桶中拷回"),
    meaning=Words(
        "DDP copies every gradient back after its all-reduce, and keeps all of them twice.",
        "DDP 在 all-reduce 后把每个梯度拷回，且全部梯度保存两份。",
    ),
    remedies=(VIEW,),
)

# --- overlap ------------------------------------------------------------------------------------

DEEPSPEED_OVERLAP = to_set(
    '"overlap_comm": true, "contiguous_gradients": true',
    "DeepSpeed: reduces gradients on a stream of its own while the backward pass goes on; stage 1 "
    "only from 0.14 on, a PipelineModule never. OpenRLHF: --overlap_comm, or --ds.overlap_comm.",
    "DeepSpeed：反向计算期间在独立流上归约梯度；阶段 1 自 0.14 起支持，PipelineModule 不支持。"
    "OpenRLHF：--overlap_comm 或 --ds.overlap_comm。",
    Words(
        "4.5 times the bucket's bytes are free on every rank. Compare loss and grad_norm of the "
        "first steps: at stages 1 and 2 releases from 0.12.4 to 0.18 could end in NaN "
        "(DeepSpeed issues 5242 and 7188, pull 7965).",
        "每个 rank 有 4.5 倍桶字节的空闲显存。请对比最初若干步的 loss 与 grad_norm：阶段 1、2 在 "
        "0.12.4 至 0.18 各版本可能出现 NaN（DeepSpeed issue 5242、7188，PR 7965）。",
    ),
)
_EVERY_EN: Final = (
    "Takes effect with the next start. Every parameter that is trained gets a gradient in each "
    "step: where one does not (a vision tower without images) Megatron ends with an error."
)
_EVERY_ZH: Final = (
    "下次启动时生效。每步中所有参与训练的参数都要得到梯度："
    "否则（如无图像时的视觉塔）Megatron 报错退出。"
)
"""Megatron-LM core/distributed/param_and_grad_buffer.py, finish_grad_sync."""

MEGATRON_OVERLAP = to_set(
    "--overlap-grad-reduce --overlap-param-gather --use-distributed-optimizer",
    "Megatron: reduces gradients during the backward and gathers parameters during the forward.",
    "Megatron：反向期间归约梯度，前向期间收集参数。",
    Words(
        f"{_EVERY_EN} Where the job had no distributed optimizer, try its checkpoint first: the "
        "optimizer's state may not load.",
        f"{_EVERY_ZH}若原作业未用分布式优化器，请先试加载检查点：优化器状态可能无法载入。",
    ),
)
MEGATRON_REDUCE = to_set(
    "--overlap-grad-reduce",
    "Megatron: reduces gradients in buckets during the backward pass.",
    "Megatron：反向期间分桶归约梯度。",
    Words(_EVERY_EN, _EVERY_ZH),
)
MEGATRON_FIELDS = to_set(
    "overlap_grad_reduce: true, overlap_param_gather: true, use_distributed_optimizer: true",
    "DistributedDataParallelConfig (NeMo, Megatron-Bridge, veRL): reduces gradients during the "
    "backward and gathers parameters during the forward.",
    "DistributedDataParallelConfig（NeMo、Megatron-Bridge、veRL）：反向期间归约梯度，前向期间收集参数。",
    MEGATRON_OVERLAP.precondition,
)
MEGATRON_FIELD = to_set(
    "overlap_grad_reduce: true",
    "DistributedDataParallelConfig (NeMo, Megatron-Bridge, veRL): reduces gradients in buckets.",
    "DistributedDataParallelConfig（NeMo、Megatron-Bridge、veRL）：反向期间分桶归约梯度。",
    MEGATRON_REDUCE.precondition,
)
_MEGATRON: Final = (MEGATRON_OVERLAP, MEGATRON_REDUCE, MEGATRON_FIELDS, MEGATRON_FIELD)
MEGATRON_SEQUENCE = to_set(
    "--sequence-parallel",
    "Megatron: tensor-parallel overlap works on activations that are split along the sequence; "
    "with --tensor-model-parallel-size 1 remove --tp-comm-overlap instead.",
    "Megatron：张量并行通信重叠要求激活按序列切分；--tensor-model-parallel-size 为 1 时应去掉 "
    "--tp-comm-overlap。",
)
ONE_SIZE = to_set(
    "--ddp-bucket-size or --ddp-num-buckets, not both",
    "Megatron: each of them gives the size of a bucket.",
    "Megatron：二者都用于确定桶大小，只能设一个。",
)
CONNECTIONS_ONE = to_set(
    "export CUDA_DEVICE_MAX_CONNECTIONS=1",
    "Kernels run in the order of their launch, so communication is not queued behind computing.",
    "内核按下发顺序执行，通信不会排在计算之后。",
)
CONNECTIONS_MORE = to_set(
    "unset CUDA_DEVICE_MAX_CONNECTIONS",
    "The default (8) lets the streams of gathers and computing run side by side.",
    "默认值（8）允许收集与计算的流并行。",
)
NO_LOGGER = to_set(
    '"comms_logger": {"enabled": false}',
    "DeepSpeed: the logger makes each collective synchronous to time it.",
    "DeepSpeed：通信日志为计时会把每次集合通信变为同步。",
)
NO_BLOCKING = to_set(
    "unset {value}",
    "Kernels are launched without waiting for the one before.",
    "下发内核时不再等待前一个完成。",
)
NO_UNUSED = to_set(
    "DistributedDataParallel(model, find_unused_parameters=False)",
    "DDP: no walk through the graph at each step, and buckets are rebuilt in ready order. "
    "Transformers: ddp_find_unused_parameters=False; Lightning: strategy='ddp'.",
    "DDP：无需每步遍历计算图，且桶按就绪顺序重建。Transformers："
    "ddp_find_unused_parameters=False；Lightning：strategy='ddp'。",
    Words(
        "Every step uses every parameter, else DDP ends with an error: DDP logs 'did not find any "
        "unused parameters' where it is so. static_graph=True is no way round it with gradient "
        "accumulation: since torch 2.1 it may crash or reduce nothing (PyTorch issue 143580).",
        "每步都用到所有参数，否则 DDP 报错退出；若如此，DDP 日志会有 'did not find any unused "
        "parameters'。有梯度累积时不要改用 static_graph=True：torch 2.1 起可能崩溃或不再归约梯度"
        "（PyTorch issue 143580）。",
    ),
)

OFF = Cause(
    slug="overlap-off",
    title=Words("Overlap is switched off", "未启用通信与计算重叠"),
    meaning=Words(
        "Gradients are reduced after they are computed, not while: all of that time is exposed.",
        "梯度在计算完之后才归约：这段时间完全暴露。",
    ),
    remedies=(DEEPSPEED_OVERLAP, *_MEGATRON),
)
NO_EFFECT = Cause(
    slug="overlap-without-effect",
    title=Words("An overlap setting that has no effect", "重叠设置不起作用"),
    meaning=Words(
        "A setting needs another one that is not set, or excludes one that is: it is ignored, or "
        "the job does not start.",
        "该设置依赖未启用的另一项，或与已启用的一项互斥：会被忽略，或作业无法启动。",
    ),
    remedies=(DEEPSPEED_OVERLAP, *_MEGATRON, MEGATRON_SEQUENCE, ONE_SIZE),
)
CONNECTIONS = Cause(
    slug="overlap-max-connections",
    title=Words(
        "CUDA_DEVICE_MAX_CONNECTIONS does not fit", "CUDA_DEVICE_MAX_CONNECTIONS 设置不合适"
    ),
    meaning=Words(
        "It decides whether streams may overtake each other. Megatron's tensor and context "
        "parallelism wants 1 before Blackwell, FSDP wants it unset.",
        "它决定各流能否并行。Megatron 张量/上下文并行（Blackwell 之前）需为 1，FSDP 则不应设置。",
    ),
    remedies=(CONNECTIONS_ONE, CONNECTIONS_MORE),
)
SYNCHRONOUS = Cause(
    slug="overlap-made-synchronous",
    title=Words("Every collective is made synchronous", "集合通信被强制同步"),
    meaning=Words(
        "A tool for finding errors or for timing is left on: nothing overlaps while it is.",
        "调试或计时工具未关闭：期间没有任何重叠。",
    ),
    remedies=(NO_LOGGER, NO_BLOCKING),
)
UNUSED = Cause(
    slug="overlap-find-unused",
    title=Words("DDP searches for unused parameters", "DDP 查找未使用的参数"),
    meaning=Words(
        "It walks through the graph at each step and never rebuilds its buckets in ready order.",
        "每步都要遍历计算图，且桶不会按就绪顺序重建。",
    ),
    remedies=(NO_UNUSED,),
)

# --- zero ---------------------------------------------------------------------------------------

PREFETCH_MORE = to_set(
    '"stage3_prefetch_bucket_size": 5e7',
    "DeepSpeed: gathers that many elements ahead of their use; takes the memory for them.",
    "DeepSpeed：提前收集这么多元素；占用相应显存。",
    MEMORY,
)
PERSIST = to_set(
    '"stage3_param_persistence_threshold": 1e5',
    "DeepSpeed: tensors smaller than this (elements) stay whole: no tiny gathers.",
    "DeepSpeed：小于该值（元素）的张量常驻不切分，避免极小的收集。",
    MEMORY,
)
LIVE = to_set(
    '"stage3_max_live_parameters": 1e9, "stage3_max_reuse_distance": 1e9',
    "DeepSpeed: parameters that are soon used again stay gathered.",
    "DeepSpeed：很快会再次使用的参数保持已收集状态。",
    MEMORY,
)
SCATTER = to_set(
    '"reduce_scatter": true',
    "DeepSpeed: with use_multi_rank_bucket_allreduce off, each rank gets the gradients that it "
    "owns alone: half the bytes of an all-reduce.",
    "DeepSpeed：关闭 use_multi_rank_bucket_allreduce 时，各 rank 只接收自己负责的梯度："
    "字节数为 all-reduce 的一半。",
)
PIN = to_set(
    '"pin_memory": true',
    "DeepSpeed: page-locked memory, or copies to the GPU are slow and block.",
    "DeepSpeed：使用锁页内存，否则与 GPU 间的拷贝慢且会阻塞。",
    Words("The host has the memory to lock.", "主机有足够内存可锁定。"),
)
SPELL = to_set(
    '"{value}"',
    "DeepSpeed: the key as it is spelt there. An unknown one ends the start, or is ignored.",
    "DeepSpeed：正确的键名。未知键会导致启动失败或被忽略。",
)
STAGE = to_set(
    '"stage": 3, or remove the setting',
    "DeepSpeed: the setting only counts at stage 3.",
    "DeepSpeed：该设置仅在阶段 3 生效。",
)

GATHERS_SMALL = Cause(
    slug="zero-gathers-small",
    title=Words("ZeRO-3 gathers in small pieces", "ZeRO-3 收集粒度过小"),
    meaning=Words(
        "Parameters are gathered shortly before their use or in tiny pieces: computing waits.",
        "参数临用前才收集，或收集粒度极小：计算因此等待。",
    ),
    remedies=(PREFETCH_MORE, PERSIST),
)
REGATHER = Cause(
    slug="zero-gathers-again",
    title=Words("ZeRO-3 gathers parameters twice", "ZeRO-3 重复收集参数"),
    meaning=Words(
        "Fewer parameters may stay gathered than one layer needs, so that they are sent again.",
        "允许保持收集状态的参数过少，需要重复传输。",
    ),
    remedies=(LIVE,),
)
SCATTER_OFF = Cause(
    slug="zero-reduce-scatter-off",
    title=Words("Gradients are all-reduced under ZeRO", "ZeRO 下仍使用 all-reduce"),
    meaning=Words(
        "Every rank receives all gradients though it keeps its own part only: twice the bytes.",
        "每个 rank 都收到全部梯度却只保留自己的部分：传输字节翻倍。",
    ),
    remedies=(SCATTER,),
)
OFFLOAD_UNPINNED = Cause(
    slug="zero-offload-unpinned",
    title=Words("Offload without page-locked memory", "卸载未使用锁页内存"),
    meaning=Words(
        "Copies between host and GPU go through a second buffer and cannot overlap.",
        "主机与 GPU 间的拷贝要经过额外缓冲，无法重叠。",
    ),
    remedies=(PIN,),
)
OTHER_STAGE = Cause(
    slug="zero-other-stage",
    title=Words("A setting of another ZeRO stage", "属于其他 ZeRO 阶段的设置"),
    meaning=Words(
        "It is written down and does nothing at this stage.", "已写入配置，但在当前阶段不起作用。"
    ),
    remedies=(STAGE,),
)
MISSPELT = Cause(
    slug="zero-key-misspelt",
    title=Words("A DeepSpeed key that is misspelt", "DeepSpeed 键名拼写错误"),
    meaning=Words(
        "No such key is known, and one that differs by a letter or two is: the default holds.",
        "没有该键名，但有仅差一两个字母的键：实际使用默认值。",
    ),
    remedies=(SPELL,),
)
