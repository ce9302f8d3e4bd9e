"""A job lets its communication run while it computes.

Why: Communication under the backward pass costs next to nothing, and after it all of its time.
DeepSpeed below stage 3 and Megatron overlap only when they are told to, and some settings undo it
without a word.
Reads: which processes hold ``/dev/nvidia-uvm`` or ``/dev/davinciN``, of their environment
CUDA_DEVICE_MAX_CONNECTIONS, CUDA_LAUNCH_BLOCKING, ASCEND_LAUNCH_BLOCKING and WORLD_SIZE, and of
their command lines the names of flags and the values of those of DDP, Megatron, FSDP and DeepSpeed.
Files: ``commcheck analyze config FILE...``.
By hand: ``tr '\\0' ' ' </proc/PID/cmdline`` for ``--overlap-grad-reduce``; ``overlap_comm`` in
DeepSpeed's JSON; ``backward_prefetch`` of FSDP.
Mend: DeepSpeed ``"overlap_comm": true, "contiguous_gradients": true``; Megatron
``--overlap-grad-reduce``, and ``--overlap-param-gather`` where the optimizer is distributed; then
profile a step, ``commcheck analyze trace`` shows what is hidden. At ZeRO stages 1 and 2 compare
loss and grad_norm of the first steps: before DeepSpeed 0.19 overlap could end in NaN.

What the rules are: OVERLAP-001 overlap is off; 002, 004 a setting lacks what it needs, or excludes
another; 003 every collective or kernel is waited for; 005 CUDA_DEVICE_MAX_CONNECTIONS; 006 no
prefetch; 007 unused parameters; 008 FSDP with one unit.
Healthy though odd: one rank of data and context parallelism has nothing to reduce. A running
Megatron job without CUDA_DEVICE_MAX_CONNECTIONS=1 has passed Megatron's own test, on Blackwell;
with ``--overlap-moe-expert-parallel-comm`` 32 is as right as 1. FSDP with SHARD_GRAD_OP or NO_SHARD
keeps its parameters after the forward: there a prefetch has nothing to gather.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing
from commcheck.frameworks.causes import (
    CONNECTIONS,
    NO_EFFECT,
    OFF,
    OVERLAP,
    SYNCHRONOUS,
    TITLES,
    UNUSED,
)
from commcheck.frameworks.causes_fsdp import ONE_UNIT, PREFETCH_OFF
from commcheck.frameworks.limits import Limits
from commcheck.frameworks.on_host import Seen, judge_host
from commcheck.model import Machine, Verdict


def judge(seen: Seen, _machine: Machine, _want: Nothing, limits: Limits) -> tuple[Verdict, ...]:
    """The jobs' own flags."""
    return judge_host(OVERLAP, seen, limits)


CHECK = Check(
    id=OVERLAP,
    title=TITLES[OVERLAP],
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
    causes=(OFF, NO_EFFECT, PREFETCH_OFF, ONE_UNIT, CONNECTIONS, SYNCHRONOUS, UNUSED),
)
