"""A profiler trace shows where the time of a training step goes.

Why: Communication that hides beneath computing costs nothing, and communication that does not is
bought hardware standing still. The share of a step in which nothing computes while the job
communicates says which of the two it is, and the picture says why: one bucket at the end, sixty
small ones, one late rank, a host that launches or fetches too slowly.
Reads: traces of torch.profiler (Kineto JSON, plain or gz, one file a rank), of torch_npu
(``trace_view.json``, ``step_trace_time.csv``, ``kernel_details.csv``, and ``communication.json``
beside them), and of gloo on CPUs. On files: ``commcheck analyze trace FILE...``. On a host: the
newest traces of the folder or pattern that ``commcheck_traces`` names, where a job that runs or ran
left them; of those of a rank the last is judged.
By hand: wrap a few steps in ``torch.profiler.profile(activities=[CPU, CUDA],
schedule=schedule(wait=1, warmup=1, active=3), on_trace_ready=tensorboard_trace_handler(DIR))``,
call ``prof.step()`` after each step, and look at the file in Perfetto: the white gaps on the
compute stream above an ``ncclDevKernel`` are the exposed communication.
Mend: in the order of blame. First a late rank: what the others spend in collectives is waiting, and
no setting of theirs mends it. Then the host: where the device waits for the next batch, or kernels
are shorter than their launches, the network is innocent. Then a wire whose busbw falls short of a
sweep's (``--busbw``): climb down, since what is slow below cannot hide above. Then overlap, bucket
sizes and prefetch, by the framework's own settings. Change one thing, profile again, and compare
the two traces.
Healthy though odd: the first profiled step may carry warm-up and the last may be cut; medians are
judged and outliers named. Micro-batches that are marked as steps are judged as the step they make.
The last DDP bucket is always exposed. Tensor-parallel collectives are exposed by nature, and send
and receive of pipeline stages are a bubble: neither is cured by buckets. Ring attention sends and
receives too, and NCCL runs an all-to-all as a SendRecv kernel: without the description of its group
nobody can tell which it is. Pipeline stages end a step one after the other, so that what they do
together then tells no late rank. The protocol in an NCCL kernel's name (LL) is that of the entry
point, not of the run. Of one rank alone nothing tells waiting from a slow wire, so that what it
exposes is only likely its own. In a table of steps the rank that communicates least is the one that
is waited for. The profiler itself slows the host: a launch-bound share near the limit may vanish
without it.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from commcheck.check import Check, Unread, expects, not_applicable, tries, undecidable
from commcheck.errors import UsageError
from commcheck.lazy import dataclass, regex
from commcheck.model import Machine, Verdict, Wanted
from commcheck.trace.causes import CAUSES, CHECK_ID, TITLE
from commcheck.trace.ladder import judge as judge_job
from commcheck.trace.lanes import pictured
from commcheck.trace.limits import Limits
from commcheck.trace.on_host import HOST_TRACES, PACKED_BYTES, TRACES, HostTraces
from commcheck.trace.read import no_progress
from commcheck.trace.rungs import Known
from commcheck.trace.source import Held
from commcheck.trace.together import gathered, read_one

_CALLED = regex(r"trace|rank", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Seen:
    """The traces that the inventory names."""

    traces: HostTraces | Unread = tries(HOST_TRACES)


@dataclass(frozen=True, slots=True)
class Want:
    """Where a job's profiler leaves its traces."""

    traces: Wanted[str | None] = expects(TRACES)


def judge(
    seen: Seen, machine: Machine, want: Want, limits: Limits
) -> Verdict | tuple[Verdict, ...]:
    """The ranks whose traces lie on the host, as one job."""
    if want.traces.value is None:
        return not_applicable(
            "commcheck_traces names no folder; of files: commcheck analyze trace FILE..."
        )
    if isinstance(seen.traces, Unread):
        what = f"the traces of {want.traces} were not read: {seen.traces.reason}"
        return undecidable(what, turn_on=seen.traces.remedy or "profile a few steps of the job")
    if seen.traces.too_large:
        left = f"{seen.traces.too_large[0]} is larger than {PACKED_BYTES >> 20} MiB when packed"
        return undecidable(left, turn_on="commcheck analyze trace on the host, or fewer steps")
    # torch_npu calls all traces alike: their whole path is their name.
    done = [
        read_one(Held(path, data), (), no_progress) for path, data in seen.traces.packed.items()
    ]
    # Beside traces lie settings and the like; what is called a trace must be one.
    others = [each.path for each in done if not _CALLED.search(PurePath(each.path.name).name)]
    try:
        job, problems = gathered(done, others)
    except UsageError as error:
        return undecidable(error.problems[0], turn_on="a trace that is whole")
    verdicts = pictured(job, judge_job(job, limits, Known()))
    unread = tuple(
        undecidable(problem, turn_on="a trace that is whole") for problem in problems.values()
    )
    return (*verdicts, *unread)


CHECK = Check(
    id=CHECK_ID,
    title=TITLE,
    subject=Machine,
    seen=Seen,
    want=Want,
    judge=judge,
    limits=Limits,
    causes=CAUSES,
)
