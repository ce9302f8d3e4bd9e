"""Does a NIC pair carry what its line and MTU allow?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from commcheck.check import failed, limit, passed, undecidable, warned
from commcheck.jobs import causes
from commcheck.jobs.perftest import Perftest, Rate
from commcheck.jobs.proof import meaning
from commcheck.jobs.reading import State, size_text
from commcheck.lazy import dataclass
from commcheck.model import Kind, Status, Verdict

# A RoCE v2 packet carries 82 bytes beside its payload: Ethernet 38 with preamble, gap and FCS,
# IP 20, UDP 8, BTH 12, ICRC 4.
_OVERHEAD_BYTES: Final = 82
_DEFAULT_MTU: Final = 4096
_SMALL: Final = 64 << 10
# PCIe Gen4 x16 and Gen5 x8 carry 25 to 27 GB/s.
_HALF_SLOT_GBITS: Final = (195.0, 220.0)


@dataclass(frozen=True, slots=True)
class Limits:
    """Shares of the payload that line and MTU allow."""

    rdma_pass: float = limit(
        0.95, unit="of the payload share of the line", source="Azure and Imbue ask 0.90 to 0.95"
    )
    rdma_warn: float = limit(
        0.85, unit="of the payload share of the line", source="public perftest results"
    )
    latency_p99_us: float = limit(4.2, unit="us", source="Imbue cluster-health")


def judge(run: Perftest, nic_gbits: float | None, limits: Limits | None = None) -> Verdict:
    """The verdict on one run; ``nic_gbits`` is the line rate of one port, Gb/s."""
    limits = limits or Limits()
    name = f"{run.test or 'perftest'} on {run.device or 'a NIC'}"
    if run.state is not State.COMPLETE:
        return _broken(run, name)
    if run.delays:
        return _latency(run, name, limits)
    best = run.best
    if best is None or run.doubtful:
        return _error("SelfCheck", f"{name}: {run.doubtful} rows contradict themselves")
    return _bandwidth(run, best, name, nic_gbits, limits)


def _bandwidth(
    run: Perftest, best: Rate, name: str, nic_gbits: float | None, limits: Limits
) -> Verdict:
    says = f"{name}: {best.average_gbits:.1f} Gb/s at {size_text(best.size)}"
    if run.both_directions:
        says += " in each direction"
    measured: dict[str, object] = {
        "average_gbits": round(best.average_gbits, 2),
        "size_bytes": best.size,
        "mtu_bytes": run.mtu or _DEFAULT_MTU,
    }
    if nic_gbits is None:
        verdict = undecidable(says, turn_on="give the line rate to hold it against: --nic-gbps 400")
        return replace(verdict, measured=measured)
    if best.size < _SMALL:
        turn_on = "use messages of 64 KiB and more: -s 8388608"
        return replace(undecidable(says, turn_on=turn_on), measured=measured)
    mtu = run.mtu or _DEFAULT_MTU
    most = nic_gbits * mtu / (mtu + _OVERHEAD_BYTES)
    fraction = best.average_gbits / most
    measured |= {"bound_gbits": round(most, 1), "fraction": round(fraction, 4)}
    text = (
        f"{says} is {fraction:.0%} of {most:.0f} Gb/s ({nic_gbits:g} Gb/s x {mtu}/"
        f"{mtu + _OVERHEAD_BYTES} payload)"
    )
    if fraction >= limits.rdma_pass:
        return passed(text, measured=measured)
    low, high = _HALF_SLOT_GBITS
    slot = nic_gbits >= 2 * low and low <= best.average_gbits <= high
    cause = causes.RDMA_PCIE if slot else causes.RDMA_SLOW
    judged = failed if fraction < limits.rdma_warn else warned
    looks = "; it looks like a PCIe slot of Gen4 x16 or Gen5 x8" if slot else ""
    return judged(cause, f"{text}, want {limits.rdma_pass:.0%}{looks}", measured=measured)


def _latency(run: Perftest, name: str, limits: Limits) -> Verdict:
    delay = run.delays[0]
    measured: Mapping[str, object] = {
        "typical_us": delay.typical_us,
        "average_us": delay.average_us,
        "p99_us": delay.p99_us,
        "size_bytes": delay.size,
    }
    text = f"{name}: 99 % of {size_text(delay.size)} messages arrive within {delay.p99_us:g} us"
    if delay.size > _SMALL or delay.p99_us <= limits.latency_p99_us:
        return passed(text, measured=measured)
    return warned(causes.LATENCY, f"{text}, want {limits.latency_p99_us:g} us", measured=measured)


def _broken(run: Perftest, name: str) -> Verdict:
    failure = next((each for each in run.failures if not each.consequence), None)
    if failure is None:
        return _error("RunTruncated", f"{name}: its output ends before the table does")
    meant = meaning(failure)
    reason = f"{name} stopped: {failure.text}" + (f" ({meant})" if meant else "")
    return _error("LaunchFailed" if run.state is State.LAUNCH_FAILED else "RunCrashed", reason)


def _error(name: str, reason: str) -> Verdict:
    return Verdict(status=Status.ERROR, kind=Kind.CHECK, reason=reason, error=name)
