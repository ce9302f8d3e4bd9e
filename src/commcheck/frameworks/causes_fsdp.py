"""What settings of FSDP can get wrong, and what to set instead.

Sources: torch.distributed.fsdp; accelerate utils/dataclasses.py, FullyShardedDataParallelPlugin.
"""

from __future__ import annotations

from commcheck.frameworks.causes import MEMORY, to_set
from commcheck.model import Cause, Words

FSDP_PREFETCH = to_set(
    "backward_prefetch: BACKWARD_PRE",
    "FSDP: gathers the next unit while this one computes; takes the memory of one more unit. In "
    "Accelerate's YAML the key is fsdp_backward_prefetch.",
    "FSDP：计算当前单元时预取下一单元；多占一个单元的显存。Accelerate YAML 中键名为 "
    "fsdp_backward_prefetch。",
    MEMORY,
)
WRAP = to_set(
    "fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP",
    "Accelerate: each block of the model's _no_split_modules, or of "
    "fsdp_transformer_layer_cls_to_wrap, is a unit: the next is gathered while this one computes.",
    "Accelerate：模型 _no_split_modules 或 fsdp_transformer_layer_cls_to_wrap 中的每个块成为一个"
    "单元：计算当前单元时收集下一单元。",
    Words(
        "Takes effect with the next start. Try the checkpoint first: one of LOCAL_STATE_DICT "
        "belongs to the units it was written with.",
        "下次启动时生效。请先试加载检查点：LOCAL_STATE_DICT 的检查点与写入时的单元划分绑定。",
    ),
)

PREFETCH_OFF = Cause(
    slug="overlap-no-prefetch",
    title=Words("Parameters are not gathered ahead", "参数未预取"),
    meaning=Words(
        "Each unit is gathered only when it is needed, and computing waits for it.",
        "每个单元到用时才收集，计算因此等待。",
    ),
    remedies=(FSDP_PREFETCH,),
)
ONE_UNIT = Cause(
    slug="overlap-one-unit",
    title=Words("FSDP takes the whole model for one unit", "FSDP 将整个模型作为一个单元"),
    meaning=Words(
        "All parameters are gathered before the forward pass, and all gradients reduced after the "
        "backward: nothing overlaps, and every rank holds the whole model.",
        "前向之前收集全部参数，反向之后归约全部梯度：没有任何重叠，且每个 rank 都持有整个模型。",
    ),
    remedies=(WRAP,),
)
