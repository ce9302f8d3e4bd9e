"""Each rail carries a collective by itself, on all hosts at once.

Why: With all rails together the slow one is hidden by the others, or slows them all: which one it
is, a run of one rail shows.
Reads: ``all_gather_perf`` split into one group per rail (``NCCL_TESTS_SPLIT``, times of the slowest
with ``-a 3``); where that is slow, rail by rail (``NCCL_IB_HCA``), then pairs on the bad rail
alone. It loads the whole fabric: ``--allow load``.
By hand: ``NCCL_IB_HCA==mlx5_3 mpirun ... all_gather_perf -b 1G -e 4G -f 2 -g 1`` for each HCA.
Mend: look at the named rail on the named host: ``mlxlink``, ``ethtool``, cable and switch port; a
rail that is slow on every host is a switch or its settings.
Healthy though odd: where hosts name their HCAs differently, a rail cannot be chosen by name, and
only the run of all of them is made.
"""

from __future__ import annotations

from commcheck.check import Check, launches
from commcheck.jobs.causes_places import PLACES
from commcheck.jobs.collective import Limits, collective_job
from commcheck.jobs.explained import NETWORK
from commcheck.jobs.job import Search
from commcheck.jobs.said import of_host
from commcheck.jobs.site import Site
from commcheck.jobs.titles import TITLES
from commcheck.lazy import dataclass
from commcheck.model import Machine, Verdict


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that was launched, and what it brought."""

    search: Search = launches(collective_job("rails"))


def judge(seen: Seen, machine: Machine, _site: Site, _limits: Limits) -> tuple[Verdict, ...]:
    """What the runs say of one host."""
    return of_host(seen.search, machine.name)


CHECK = Check(
    id="physical.collective-rails",
    title=TITLES["physical.collective-rails"],
    subject=Machine,
    seen=Seen,
    want=Site,
    limits=Limits,
    judge=judge,
    needs=("physical.collective-node",),
    causes=PLACES,
    platforms=frozenset({"gpu-roce", "gpu-ib", "ascend"}),
    effects=frozenset({"load"}),
    explained_by=NETWORK,
)
