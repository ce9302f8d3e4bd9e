"""Each rail is cabled to the switch it should be, and the switch agrees who is there.

Why: Rail-optimised fabrics give each rail a leaf of its own. A cable in the wrong switch or two
hosts swapped behind a patch panel still have a link: traffic takes detours, and whoever repairs by
the plan pulls the wrong cable.
Reads: ``lldpctl -f json DEV`` of lldpd, or ``lldptool -t -n -i DEV`` of lldpad (root). One verdict
for each Ethernet rail; switch and port stand in it as measured values.
By hand: ``lldpctl DEV``, or ``lldptool -t -n -i DEV``; what is plugged in where, from the switch:
``show lldp neighbors``.
Mend: look at both ends, then swap the cables back, or correct the plan. A stale port description
on the switch is corrected there.
On the switch: LLDP on for the host ports (rx and tx); names and port descriptions kept up.
Healthy though odd: no LLDP daemon is normal, and then nothing is judged, unless ``commcheck_leaf``
declares a switch: then it is undecided. The card's own agent may show up as a second neighbour
without a name. Port descriptions are free text: only one that names a host of the same pattern as
this one, and another, counts.
"""

from __future__ import annotations

import re

from commcheck.applies import ethernet_port_owner
from commcheck.check import (
    Check,
    Nothing,
    Reader,
    Unread,
    expects,
    failed,
    first_of,
    not_applicable,
    passed,
    tries,
    undecidable,
    warned,
)
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.expect import LEAF
from commcheck.formats.lldp import Neighbour
from commcheck.formats.lldpctl import LLDPCTL
from commcheck.formats.lldptool import LLDPTOOL
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


def parse(output: Output) -> str:
    """The kernel's host name."""
    require_ok(output, "cat")
    name = output.text.removesuffix("\n")
    if not output.text.endswith("\n") or not re.fullmatch(r"[\w.-]{1,64}", name):
        raise ParseError("hostname", output.text, "a name on one line")
    return name


HOSTNAME = Reader(
    tool="hostname", commands=(Command(("cat", "/proc/sys/kernel/hostname")),), parse=parse
)


@dataclass(frozen=True, slots=True)
class Seen:
    """Who is at the other end, and what this host is called."""

    neighbours: tuple[Neighbour, ...] | Unread = tries(first_of(LLDPCTL, LLDPTOOL))
    hostname: str | Unread = tries(HOSTNAME)


@dataclass(frozen=True, slots=True)
class Want:
    """The declared switch."""

    leaf: Wanted[tuple[tuple[str, str], ...] | None] = expects(LEAF)


LOOK = Remedy(
    command="lldpctl {netdev}",
    effect=Words(
        "Shows switch and port (root). Follow the cable at both ends, then swap it back or correct "
        "the plan.",
        "显示交换机与端口（需 root）。从两端核对线缆，再换回正确位置或修正规划。",
    ),
    precondition=Words(
        "Reading is free; pulling a cable drops the link: both hosts drained.",
        "读取无影响；拔线会断链：涉及的主机均需已排空。",
    ),
    who="network team",
)
TURN_ON = "run lldpd on the host, and LLDP on the switch port"

OTHER_SWITCH = Cause(
    slug="rail-other-switch",
    title=Words("Rail is on another switch", "网卡（rail）接入了其他交换机"),
    meaning=Words(
        "The rail's cable ends in a switch that is not the declared one: it is cabled wrongly, or "
        "the plan is out of date.",
        "该轨线缆接入的交换机与声明不符：接线错误，或规划已过期。",
    ),
    remedies=(LOOK,),
)
SWAPPED = Cause(
    slug="rail-swapped",
    title=Words("Switch expects another host or port", "交换机端口描述指向其他主机或端口"),
    meaning=Words(
        "The description of the switch port names another host or NIC: two cables are swapped, or "
        "the description is stale.",
        "交换机端口描述的是另一台主机或网卡：两根线缆互换，或描述未更新。",
    ),
    remedies=(LOOK,),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """Switch against the declared one, then the port's description against this host."""
    named = f"{rail.label} ({rail.netdev})"
    wanted = _declared(want, rail)
    if isinstance(seen.neighbours, Unread):
        if wanted is None:
            return not_applicable(f"nothing tells the switch of {named}: {seen.neighbours.reason}")
        return undecidable(
            f"the switch of {named} is not known: {seen.neighbours.reason}", turn_on=TURN_ON
        )
    # A neighbour with a system name is a switch; the card's own agent has none.
    found = sorted(seen.neighbours, key=lambda each: each.switch is None)
    if not found:
        if wanted is None:
            return not_applicable(f"no switch was heard on {named}: LLDP may be off there")
        return undecidable(f"no switch was heard on {named}", turn_on=TURN_ON)
    return _against(found[0], named, wanted, seen, rail, want)


def _against(
    switch: Neighbour, named: str, wanted: str | None, seen: Seen, rail: Rail, want: Want
) -> Verdict:
    says = f"{named} is on {switch.name} port {switch.port or 'not told'}"
    measured = {
        "switch": switch.name,
        "switch_port": switch.port,
        "switch_port_description": switch.port_description,
        "switch_max_frame_bytes": switch.max_frame_bytes,
    }
    places = {"netdev": str(rail.netdev)}
    if wanted is not None and _short(wanted) != _short(switch.name) and wanted != switch.chassis:
        reason = f"{says}, want {wanted}: {want.leaf.origin}"
        return failed(OTHER_SWITCH, reason, measured=measured, **places)
    hostname = "" if isinstance(seen.hostname, Unread) else seen.hostname
    if other := _other_end(switch.port_description or "", hostname, rail):
        reason = f"{says}, which is described as {other}, want {hostname}:{rail.netdev}"
        return warned(SWAPPED, reason, measured=measured, **places)
    return passed(says, measured=measured)


def _declared(want: Want, rail: Rail) -> str | None:
    """The most exact declaration of this rail's switch."""
    declared = dict(want.leaf.value or ())
    for name in (rail.label, rail.hca, rail.netdev or "", str(rail.index), ""):
        if name in declared:
            return declared[name]
    return None


def _short(name: str) -> str:
    """A name without its domain."""
    return name.partition(".")[0].lower()


def _other_end(description: str, hostname: str, rail: Rail) -> str:
    """``host:netdev`` of the description where it is another one, "" where it tells nothing.

    Free text says nothing: the host in it must have the form of this host's name, and the NIC the
    form of this NIC's.
    """
    match = re.fullmatch(r"\s*([\w.-]+?)[:/ _]+([\w.-]+)\s*", description)
    if match is None or not hostname or not rail.netdev:
        return ""
    host, nic = _short(match[1]), match[2]
    if _form(host) != _form(_short(hostname)):
        return ""
    mine = {rail.netdev, rail.hca}
    same_form = any(_form(nic) == _form(name) for name in mine)
    if host == _short(hostname) and (nic in mine or not same_form):
        return ""
    return f"{host}:{nic}"


def _form(name: str) -> str:
    """``gpu-a01`` -> ``gpu-a0``: a name without its number."""
    return re.sub(r"\d+", "0", name.lower())


CHECK = Check(
    id="physical.rail-switch",
    title=Words("Rail is on its switch", "网卡（rail）接入预期交换机"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.nic-link-up",),
    causes=(OTHER_SWITCH, SWAPPED),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_port_owner,
)
