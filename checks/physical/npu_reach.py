"""Each NPU reaches the NPU of the same number on other hosts.

Why: A link that is up says nothing of the path behind it: a VLAN, a route or a gateway that is
wrong lets everything on both hosts look right, and HCCL ends at its start with EI0006.
Reads: ``hccn_tool -i N -ip -g``, ``-link -g`` and ``-vnic -g`` of pairs of free hosts, then
``-ping -g address PEER`` from each NPU; ``-hccs_ping`` where a RoCE link is not in use, as inside a
superpod. A pair that fails is tried with other partners, then NPU by NPU. It sends a few packets:
``--allow load``.
By hand: the same (root). Judge the line "N% packets loss": ``-hccs_ping`` ends in "Cmd executed
successfully!" even where packets are lost.
Mend: the path: VLAN and routes of the NPU's subnet, its gateway (``-gateway -g``).
On the switch: VLAN of both ports, the subnet's route between leaves.
Healthy though odd: hosts of different superpods do not reach each other over HCCS: where no NPU of
a pair does, it is undecided. Fabrics that filter ICMP: then no ping passes anywhere.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, launches
from commcheck.jobs.job import Search
from commcheck.jobs.npu_reach import PINGS, UNREACHED, npu_job
from commcheck.jobs.site import Site
from commcheck.jobs.titles import TITLES
from commcheck.lazy import dataclass
from commcheck.model import Machine, Verdict
from commcheck.npu import ASCEND


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that was sent, and what came back."""

    search: Search = launches(npu_job())


def judge(seen: Seen, machine: Machine, _site: Site, _limits: Nothing) -> tuple[Verdict, ...]:
    """What the pings say of one host."""
    return PINGS.of_host(seen.search, machine.name)


CHECK = Check(
    id="physical.npu-reach",
    title=TITLES["physical.npu-reach"],
    subject=Machine,
    seen=Seen,
    want=Site,
    judge=judge,
    needs=("physical.npu-ip", "physical.npu-link-up"),
    causes=(UNREACHED,),
    platforms=ASCEND,
    effects=frozenset({"load"}),
)
