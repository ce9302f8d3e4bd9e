"""Every host carries a collective to another host at the rate of its NICs.

Why: Link lights prove little. Two hosts at a time show which host is slow, and with other partners
whether it is the host or the path: a pair is as good as its worse end.
Reads: ``all_gather_perf`` over mpirun or srun on pairs of free hosts, all pairs of a round at once;
a pair that failed is tried with hosts that passed, and alone, before anything is blamed. Loss
counters of the hosts are read before and after. It loads the fabric: ``--allow load``.
``plan: circle`` runs every pair, ``plan: bisect`` halves what fails.
By hand: ``mpirun -H gpu-01:8,gpu-02:8 -np 16 all_gather_perf -b 1G -e 4G -f 2 -g 1``; then the slow
host with another partner.
Mend: keep the named host out of jobs, then look one layer below on it: PFC, PCIe, link speed. Where
a path is named, both hosts are good elsewhere: cable, leaf or spine between them.
Healthy though odd: a host that failed below is kept out by name; with ``suspects: include`` it
runs, and what it shows is told as a consequence of what was found there. Two hosts on a tree may
exceed the NICs, so all_gather is run by default. Of NPUs no figure of healthy hosts is published:
between a tenth of the bound and what passes, a run is undecidable until ``pairs`` below
``commcheck_expected_busbw`` says what good hosts of yours show.
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

    search: Search = launches(collective_job("pairs"))


def judge(seen: Seen, machine: Machine, _site: Site, _limits: Limits) -> tuple[Verdict, ...]:
    """What the runs say of one host."""
    return of_host(seen.search, machine.name)


CHECK = Check(
    id="physical.collective-pairs",
    title=TITLES["physical.collective-pairs"],
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
