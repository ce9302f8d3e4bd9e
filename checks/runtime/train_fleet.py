"""One short training over all free hosts hides its communication, and no rank of it comes late.

Why: A step inside one host never leaves NVLink. What a job gets of the network, and which host it
waits for, shows only in a training that crosses it: the fabric, the NICs, every host's pace.
Reads: the training of runtime.train-step, once over all hosts that passed below: each starts its
ranks under torchrun, and they meet at the first host's address and ``port``. Every host's traces
come back and are judged as one job's. It loads accelerators and fabric for about a minute:
``--allow load``. It writes one private folder below the temporary one of each host, and removes
it. The site's own ``commcheck_train_command`` is told the meeting point in MASTER_ADDR,
MASTER_PORT, NNODES and NODE_RANK, and torchrun itself in PET_MASTER_ADDR and its like.
By hand: ``torchrun --nnodes 2 --node-rank 0 --master-addr HOST --master-port 29511
--nproc-per-node 8 SCRIPT`` on each host with its rank, under ``torch.profiler``, then
``commcheck analyze trace FOLDER`` with the traces of all ranks.
Mend: a late rank names its host: compare it with the others (runtime.train-step there). Where
exposed communication is the finding, compare with physical.collective-fleet: if that is good, it is
the model's share of communication; if not, climb down.
Healthy though odd: hosts' clocks differ; they are aligned by the ends of common collectives. The
ranks find each other over ``commcheck_mpi_interface``, and the first host's port must be open to
the others. A small model over a slow network is exposed by nature.
"""

from __future__ import annotations

from commcheck.check import Check, launches
from commcheck.jobs.explained import FLEET
from commcheck.jobs.job import Search
from commcheck.jobs.step.job import fleet_job
from commcheck.jobs.step.limits import FleetLimits
from commcheck.jobs.step.site import StepSite
from commcheck.jobs.step.verdicts import of_fleet_step
from commcheck.lazy import dataclass
from commcheck.model import Machine, Verdict, Words
from commcheck.trace.causes import CAUSES


@dataclass(frozen=True, slots=True)
class Seen:
    """The training over all hosts, and what its traces say."""

    search: Search = launches(fleet_job())


def judge(
    seen: Seen, machine: Machine, _site: StepSite, _limits: FleetLimits
) -> tuple[Verdict, ...]:
    """One host's part in it."""
    return of_fleet_step(seen.search, machine.name)


CHECK = Check(
    id="runtime.train-fleet",
    title=Words("One profiled training over all hosts", "跨主机采样训练"),
    subject=Machine,
    seen=Seen,
    want=StepSite,
    limits=FleetLimits,
    judge=judge,
    needs=("runtime.train-step",),
    causes=CAUSES,
    platforms=frozenset({"gpu-roce", "gpu-ib", "ascend"}),
    effects=frozenset({"load"}),
    explained_by=FLEET,
)
