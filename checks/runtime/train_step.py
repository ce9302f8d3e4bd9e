"""A short training step hides its communication, and no rank of it comes late.

Why: A sweep says what the wire can carry; a step says what training gets of it. Every layer below
takes part: a GPU that throttles makes a late rank, a slow link makes exposed communication, a slow
host makes a stream that waits for launches.
Reads: a small PyTorch training that commcheck carries to every free host and starts there under
torchrun, one rank for each accelerator: data-parallel (``sharding: fsdp`` for FSDP), sized to the
accelerator's memory, five steps under torch.profiler. The traces come back packed and are judged
as those of a job are. It loads the accelerators for about a minute: ``--allow load``. It writes
one private folder below the temporary one of the host, and removes it. Where the inventory has
``commcheck_train_command``, the start of the site's own training (torchrun or python, torch 2.0 or
later), that is started instead: its files are not edited, a hook profiles a few of its optimizer
steps after ``skip`` others, and then it is ended.
By hand: ``torchrun --standalone --nproc-per-node 8 SCRIPT`` with a few steps under
``torch.profiler``, one trace a rank, then ``commcheck analyze trace FOLDER``.
Mend: as the cause says. A late rank first: compare clocks, power and temperature of its GPU with
the others (``nvidia-smi -q -d CLOCK,PERFORMANCE``). Exposed communication of this step, whose
buckets are torch's defaults, is the host's: look at the collective inside it. A host that launches
slowly: CPU governor, NUMA binding, other work on its cores.
Healthy though odd: the step is a model's, and yours has other shares of communication. A host
without torch is undecidable until ``commcheck_train_python`` names a Python that has it;
``commcheck_train_environment`` holds the words that enter its container, which must hand
COMMCHECK_MARK on if it is to be ended with the run, as in docker exec -e COMMCHECK_MARK.
``commcheck_train_folder`` is where the site's command is started. On CPUs
(``device: cpu``) the cores' other work shows as late ranks: no worse than a warning.
"""

from __future__ import annotations

from commcheck.check import Check, launches
from commcheck.jobs.explained import INSIDE
from commcheck.jobs.job import Search
from commcheck.jobs.step.job import step_job
from commcheck.jobs.step.limits import StepLimits
from commcheck.jobs.step.site import StepSite
from commcheck.jobs.step.verdicts import of_step
from commcheck.lazy import dataclass
from commcheck.model import Machine, Verdict, Words
from commcheck.trace.causes import CAUSES


@dataclass(frozen=True, slots=True)
class Seen:
    """Every step that was launched, and what its traces say."""

    search: Search = launches(step_job())


def judge(
    seen: Seen, machine: Machine, _site: StepSite, _limits: StepLimits
) -> tuple[Verdict, ...]:
    """What the step inside one host says."""
    return of_step(seen.search, machine.name)


CHECK = Check(
    id="runtime.train-step",
    title=Words("A profiled training step", "采样训练步"),
    subject=Machine,
    seen=Seen,
    want=StepSite,
    limits=StepLimits,
    judge=judge,
    causes=CAUSES,
    platforms=frozenset({"gpu-roce", "gpu-ib", "ascend"}),
    effects=frozenset({"load"}),
    explained_by=INSIDE,
)
