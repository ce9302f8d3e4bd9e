"""Each rail reaches the same rail of other hosts, with packets of full size.

Why: A link that is up says nothing of the path behind it: a port in another VLAN, a missing route
or a switch port with a smaller MTU lets everything on both hosts look right, and the job hangs or
dies when its first large message crosses.
Reads: ``ping -c 3 -M do -s MTU-28 -I DEV PEER`` between pairs of free hosts, all rails one after
another; small packets too where those are lost; a pair that fails is tried with other partners,
then rail by rail. It sends a few packets: ``--allow load``.
By hand: the same; 4172 bytes for an MTU of 4200, 8972 for 9000. ``tracepath -n PEER`` names the hop
that is too small.
Mend: the path. Never shrink the MTU of one host.
On the switch: VLAN and MTU of both ports and of every hop between them; routes of the rail's
subnets.
Healthy though odd: fabrics that filter ICMP: then no ping passes anywhere, and it is undecided.
Rails without IPv4 are not tried. One lost packet of three is a fault: nothing else is on the wire.
"""

from __future__ import annotations

from commcheck.check import Check, launches
from commcheck.jobs.job import Search
from commcheck.jobs.reach import PATH_MTU, PINGS, UNREACHED, Limits, reach_job
from commcheck.jobs.site import Site
from commcheck.jobs.titles import TITLES
from commcheck.lazy import dataclass
from commcheck.model import Machine, Verdict


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that was sent, and what came back."""

    search: Search = launches(reach_job())


def judge(seen: Seen, machine: Machine, _site: Site, _limits: Limits) -> tuple[Verdict, ...]:
    """What the pings say of one host."""
    return PINGS.of_host(seen.search, machine.name)


CHECK = Check(
    id="physical.rail-reach",
    title=TITLES["physical.rail-reach"],
    subject=Machine,
    seen=Seen,
    want=Site,
    limits=Limits,
    judge=judge,
    needs=("physical.nic-link-up",),
    causes=(UNREACHED, PATH_MTU),
    platforms=frozenset({"gpu-roce"}),
    effects=frozenset({"load"}),
)
