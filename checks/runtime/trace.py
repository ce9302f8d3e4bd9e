"""A profiler trace shows where the time of a training step goes.

Why: Communication that hides beneath computing costs nothing, and communication that does not is
bought hardware standing still. The share of a step in which nothing computes while the job
communicates says which of the two it is, and the picture says why: one bucket at the end, sixty
small ones, one late rank, a host that launches too slowly.
Reads: traces of torch.profiler (Kineto JSON, plain or gz, one file a rank), of torch_npu
(``trace_view.json``, ``step_trace_time.csv``), and of gloo on CPUs. On files:
``commcheck analyze trace FILE...``. A host cannot be asked for one; a training step must run.
By hand: wrap a few steps in ``torch.profiler.profile(activities=[CPU, CUDA],
schedule=schedule(wait=1, warmup=1, active=3), on_trace_ready=tensorboard_trace_handler(DIR))``,
call ``prof.step()`` after each step, and look at the file in Perfetto: the white gaps on the
compute stream above an ``ncclDevKernel`` are the exposed communication.
Mend: in the order of blame. First a late rank: what the others spend in collectives is waiting, and
no setting of theirs mends it. Then the host: where kernels are shorter than their launches, the
network is innocent. Then overlap, bucket sizes and prefetch, by the framework's own settings. Then
the wire: compare its busbw with a sweep, and climb down. Change one thing, profile again, and
compare the two traces.
Healthy though odd: the first profiled step may carry warm-up and the last may be cut; medians are
judged and outliers named. The last DDP bucket is always exposed. Tensor-parallel collectives are
exposed by nature, and send and receive of pipeline stages are a bubble: neither is cured by
buckets. The protocol in an NCCL kernel's name (LL) is that of the entry point, not of the run. Of
one rank alone nothing tells waiting from a slow wire. The profiler itself slows the host: a
launch-bound share near the limit may vanish without it.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, not_applicable
from commcheck.model import Machine, Verdict
from commcheck.trace.causes import (
    CHECK_ID,
    EXPOSED,
    GATHER_BOUND,
    LAUNCH_BOUND,
    NOT_OVERLAPPED,
    PIPELINE_BUBBLE,
    SLOW_WIRE,
    SMALL_COLLECTIVES,
    STRAGGLER,
    TENSOR_PARALLEL,
    TITLE,
)
from commcheck.trace.limits import Limits


def judge(_seen: Nothing, _machine: Machine, _want: Nothing, _limits: Limits) -> Verdict:
    """Of a host alone nothing is known: traces are judged by ``commcheck.trace.ladder``."""
    return not_applicable(
        "no trace is read on hosts: profile a few steps, then commcheck analyze trace FILE..."
    )


CHECK = Check(
    id=CHECK_ID,
    title=TITLE,
    subject=Machine,
    seen=Nothing,
    judge=judge,
    limits=Limits,
    causes=(
        STRAGGLER,
        LAUNCH_BOUND,
        GATHER_BOUND,
        SMALL_COLLECTIVES,
        NOT_OVERLAPPED,
        SLOW_WIRE,
        TENSOR_PARALLEL,
        PIPELINE_BUBBLE,
        EXPOSED,
    ),
)
