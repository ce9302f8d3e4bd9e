"""Rules on the mark of RoCE packets: traffic class to DSCP to priority to PFC. ENV-020, ENV-021."""

from __future__ import annotations

from typing import Final

from commcheck.formats.qos import Qos
from commcheck.lazy import dataclass
from commcheck.nccl.environment import causes
from commcheck.nccl.environment.model import Environment, HostFacts, Port
from commcheck.nccl.environment.rule import EnvRule, each, fail
from commcheck.nccl.environment.rules_network import HOST, selected
from commcheck.nccl.ruling import Ruling, other, right, unknown, wrong


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a port puts the job's packets. ``why``: the steps, for a person."""

    port: str
    why: str
    lossless: bool
    confused: bool  # the value would fit if it were a DSCP, or a priority


def priority_of(tclass: int, qos: Qos) -> int:
    """The priority of a packet on a port that trusts DSCP."""
    listed = dict(qos.dscp_prio or ())
    return listed.get(tclass >> 2, (tclass >> 5) & 7)


def _mark(one: Environment, port: Port, qos: Qos) -> Mark | None:
    """The port's answer; None where a step of the chain is not known."""
    given = one.int("NCCL_IB_TC")
    begin = one.show("NCCL_IB_TC")
    if given is None or given < 0:
        given, begin = 0, "NCCL_IB_TC unset: 0"
    if port.tclass is not None:
        given, begin = port.tclass, f"traffic class {port.tclass} (forced by the driver)"
    if qos.trust == "dscp":
        priority = priority_of(given, qos)
        steps = f"{begin} is DSCP {given >> 2}, priority {priority}"
    elif qos.trust in ("pcp", "none"):
        level = one.int("NCCL_IB_SL") or 0
        priority = level & 7
        steps = f"{one.show('NCCL_IB_SL')} on a port that trusts {qos.trust} is priority {priority}"
    else:
        return None
    enabled = ", ".join(map(str, sorted(qos.pfc))) or "none"
    as_dscp = dict(qos.dscp_prio or ()).get(given, given >> 3) if 0 < given < 64 else None
    confused = port.tclass is None and qos.trust == "dscp" and as_dscp in qos.pfc
    return Mark(port.hca, f"{steps}, PFC is on for {enabled}", priority in qos.pfc, bool(confused))


MARKS: Final = f"give what mlnx_qos prints as a further file, or {HOST}"


def _marks(one: Environment, host: HostFacts) -> list[Mark] | Ruling:
    shown = one.show("NCCL_IB_TC")
    if host.network and not host.network.startswith("IB"):
        return unknown(f"{host.network} may set a class of its own", "look into its settings")
    if host.lossless is False:
        return other("the fabric is not lossless")
    if one.get("NCCL_IB_TC") is None and not one.is_unset("NCCL_IB_TC"):
        return other("jobs set NCCL_IB_TC themselves")
    ports = selected(one, host)
    if ports is None and host.marking:
        ports = host.marking
    roce = [port for port in ports or () if port.link == "Ethernet"]
    if ports is not None and not roce:
        return other("no RoCE port is used")
    if roce and all(port.is_vf for port in roce):
        return other("the ports are virtual functions: the machine below knows their priorities")
    if one.int("NCCL_IB_TC") is None and host.link != "Ethernet":
        return other("the variable is not set")
    known = [port for port in roce if port.qos is not None and port.tclass_known]
    if not known:
        return unknown(f"{shown}: the priorities and PFC of the ports are not known", MARKS)
    marks = [(port, _mark(one, port, port.qos)) for port in known if port.qos is not None]
    found = [mark for _, mark in marks if mark is not None]
    if len(found) < len(roce) and all(mark.lossless for mark in found):
        return unknown(f"{shown}: trust or PFC of some ports could not be read", MARKS)
    return found


def _lossless(one: Environment, host: HostFacts) -> Ruling:
    marks = _marks(one, host)
    if isinstance(marks, Ruling):
        return marks
    lossy = [mark for mark in marks if not mark.lossless]
    if not lossy:
        return right(marks[0].why)
    ports = ", ".join(mark.port for mark in lossy if mark.port)
    on = f" on {ports}" if ports else ""
    return wrong(fail(causes.TRAFFIC_CLASS, f"{lossy[0].why}{on}: want a lossless priority"))


def _confused(one: Environment, host: HostFacts) -> Ruling:
    marks = _marks(one, host)
    if isinstance(marks, Ruling):
        return other("ENV-020 says what is missing") if marks.state == "unknown" else marks
    if not any(mark.confused and not mark.lossless for mark in marks):
        return right()
    value = one.int("NCCL_IB_TC") or 0
    reason = (
        f"{one.show('NCCL_IB_TC')} looks like a DSCP: "
        f"NCCL_IB_TC={4 * value} marks with DSCP {value} (add 2 for ECN)"
    )
    return wrong(fail(causes.TRAFFIC_CLASS, reason))


RULES: Final[tuple[EnvRule, ...]] = (
    each("ENV-020", "RoCE rides in a lossless class", _lossless, weighty=True),
    each("ENV-021", "the traffic class is no DSCP", _confused),
)
