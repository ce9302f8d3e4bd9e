"""Bucket sizes of a job are neither bound by latency nor so large that nothing overlaps.

Why: Gradients are sent in buckets while the backward pass goes on. Many small ones pay the latency
of a collective again and again; one large one starts when everything is computed already. The
wrong unit does either by a factor of a million: DDP counts MiB, DeepSpeed and Megatron elements.
Reads: which processes hold ``/dev/nvidia-uvm`` or ``/dev/davinciN``, and of their command lines the
names of flags and the values of those of DDP, Megatron, FSDP and DeepSpeed. Files:
``commcheck analyze config ds_config.json``; predicted from a trace and a sweep:
``commcheck analyze bucket rank0.json.gz sweep.txt``.
By hand: ``tr '\\0' ' ' </proc/PID/cmdline`` for ``--ddp-bucket-size`` or ``--ddp_bucket_cap_mb``;
``reduce_bucket_size`` in DeepSpeed's JSON; ``ddp_model._get_ddp_logging_data()`` has the sizes that
DDP came to.
Mend: set what ``analyze bucket`` predicts, and measure: from 4 times latency x bandwidth (some
4 MB) on, and at least four buckets a model. DeepSpeed: 4.5 times the bucket's bytes must be free.

What the rules are: BUCKET-001 a number in the wrong unit; 002 too small; 003 too large; 004 DDP's
own log shows one bucket, or little overlap; 005 gradients copied out of buckets.
Healthy though odd: sizes below the largest tensor all give the same buckets, since a tensor is
never split; DDP's first step has one bucket with everything; ``auto`` is the trainer's to fill in.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing
from commcheck.frameworks.causes import (
    BUCKETS,
    COPIES,
    TITLES,
    TOO_LARGE,
    TOO_SMALL,
    UNIT,
    WIRE_BOUND,
)
from commcheck.frameworks.limits import Limits
from commcheck.frameworks.on_host import Seen, judge_host
from commcheck.model import Machine, Verdict


def judge(seen: Seen, _machine: Machine, _want: Nothing, limits: Limits) -> tuple[Verdict, ...]:
    """The jobs' own flags."""
    return judge_host(BUCKETS, seen, limits)


CHECK = Check(
    id=BUCKETS,
    title=TITLES[BUCKETS],
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
    causes=(TOO_SMALL, TOO_LARGE, WIRE_BOUND, UNIT, COPIES),
)
