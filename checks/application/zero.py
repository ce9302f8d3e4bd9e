"""ZeRO gathers ahead of need, in pieces worth a collective, and sends no byte twice.

Why: Stage 3 gathers every parameter before its use, forward and backward. A small prefetch bucket
makes computing wait for each gather; a small persistence threshold makes a collective of every
bias; settings that are misspelt or of another stage do nothing, and nobody notices.
Reads: which processes hold ``/dev/nvidia-uvm`` or ``/dev/davinciN``, and of their command lines
which DeepSpeed JSON they name. The JSON itself: ``commcheck analyze config ds_config.json``.
By hand: ``zero_optimization`` in the JSON that ``--deepspeed`` or ``--deepspeed_config`` names.
Mend: DeepSpeed's defaults (prefetch 5e7, persistence 1e5, live parameters 1e9 elements) are a
good start; ``zero_hpz_partition_size`` keeps gathers inside a host; ``commcheck analyze trace``
shows the share of the forward pass that waits for gathers.

What the rules are: ZERO-001, 002 gathers too small; 003 gathered again; 004 all-reduce where a
reduce-scatter would do; 005 offload without page-locked memory; 006 a setting of another stage;
007 a key that is misspelt.
Healthy though odd: stage 0 is plain data parallelism; ``auto`` is the trainer's to fill in; offload
is a choice of memory over time, and so is stage 2 with accumulation: it reduces gradients after
every accumulated step, stage 1 once. ``offload_param`` and ZeRO++ do nothing below stage 3.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing
from commcheck.frameworks.causes import (
    GATHERS_SMALL,
    MISSPELT,
    OFFLOAD_UNPINNED,
    OTHER_STAGE,
    REGATHER,
    SCATTER_OFF,
    TITLES,
    ZERO,
)
from commcheck.frameworks.limits import Limits
from commcheck.frameworks.on_host import Seen, judge_host
from commcheck.model import Machine, Verdict


def judge(seen: Seen, _machine: Machine, _want: Nothing, limits: Limits) -> tuple[Verdict, ...]:
    """The jobs' own flags."""
    return judge_host(ZERO, seen, limits)


CHECK = Check(
    id=ZERO,
    title=TITLES[ZERO],
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
    causes=(GATHERS_SMALL, REGATHER, SCATTER_OFF, OFFLOAD_UNPINNED, OTHER_STAGE, MISSPELT),
)
