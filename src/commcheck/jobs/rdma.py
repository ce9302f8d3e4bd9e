"""Does a NIC pair carry what its line and MTU allow, in messages as large as training sends?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from commcheck.check import failed, known_to, limit, passed, undecidable, warned
from commcheck.jobs import causes
from commcheck.jobs.perftest import Perftest, Rate
from commcheck.jobs.proof import meaning
from commcheck.jobs.reading import State, size_text
from commcheck.jobs.said import error
from commcheck.lazy import dataclass
from commcheck.model import Cause, Verdict

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
    above_line: float = limit(
        1.03,
        unit="of the payload share of the line",
        source="InfiniBand's headers leave 1.4 % more",
    )
    latency_p99_us: float = limit(4.2, unit="us", source="Imbue cluster-health")


def judge(run: Perftest, nic_gbits: float | None, limits: Limits | None = None) -> Verdict:
    """The verdict on one run; ``nic_gbits`` is the line rate of one port, Gb/s."""
    verdict = _judged(run, nic_gbits, limits or Limits())
    # An NPU has no verbs device: what runs perftest is a host with NICs of its own.
    return replace(verdict, remedies=known_to("gpu", verdict.remedies))


def _judged(run: Perftest, nic_gbits: float | None, limits: Limits) -> Verdict:
    name = f"{run.test or 'perftest'} on {run.device or 'a NIC'}"
    if run.state is not State.COMPLETE:
        return _broken(run, name)
    if run.delays:
        return _latency(run, name, limits)
    if not run.rates or run.doubtful:
        return error("SelfCheck", f"{name}: {run.doubtful} rows contradict themselves")
    return _bandwidth(run, name, nic_gbits, limits)


def _bandwidth(run: Perftest, name: str, nic_gbits: float | None, limits: Limits) -> Verdict:
    large = run.at_least(_SMALL)
    last = (large or run.at_least(0))[-1]  # a table of all sizes is judged at its largest
    says = f"{name}: {last.average_gbits:.1f} Gb/s at {size_text(last.size)}"
    if run.both_directions:
        says += " in each direction"
    measured: dict[str, object] = {
        "average_gbits": round(last.average_gbits, 2),
        "size_bytes": last.size,
        "mtu_bytes": run.mtu or _DEFAULT_MTU,
    }
    if nic_gbits is None:
        verdict = undecidable(says, turn_on="give the line rate to hold it against: --nic-gbps 400")
        return replace(verdict, measured=measured)
    if not large:
        turn_on = "use messages of 64 KiB and more: -s 8388608"
        return replace(undecidable(says, turn_on=turn_on), measured=measured)
    mtu = run.mtu or _DEFAULT_MTU
    most = nic_gbits * mtu / (mtu + _OVERHEAD_BYTES)
    fraction = last.average_gbits / most
    measured |= {"bound_gbits": round(most, 1), "fraction": round(fraction, 4)}
    text = (
        f"{says} is {fraction:.0%} of {most:.0f} Gb/s ({nic_gbits:g} Gb/s x {mtu}/"
        f"{mtu + _OVERHEAD_BYTES} payload)"
    )
    if fraction > limits.above_line:
        turn_on = "correct the line rate: --nic-gbps, commcheck_line_rate_gbits in the inventory"
        verdict = undecidable(f"{text}: more than the line carries", turn_on=turn_on)
        return replace(verdict, measured=measured)
    if fraction >= limits.rdma_pass:
        return passed(text, measured=measured)
    cause, looks = _looks_like(large, nic_gbits, limits.rdma_pass * most)
    judged = failed if fraction < limits.rdma_warn else warned
    return judged(cause, f"{text}, want {limits.rdma_pass:.0%}{looks}", measured=measured)


def _looks_like(large: Sequence[Rate], nic_gbits: float, enough: float) -> tuple[Cause, str]:
    """The cause of a last row that is too slow, and what speaks for it."""
    best, last = max(large, key=lambda rate: rate.average_gbits), large[-1]
    if best.average_gbits >= enough:
        reached = f"{best.average_gbits:.1f} Gb/s at {size_text(best.size)}"
        return causes.RDMA_FALLS, f"; it reached {reached} before"
    low, high = _HALF_SLOT_GBITS
    if nic_gbits >= 2 * low and low <= last.average_gbits <= high:
        return causes.RDMA_PCIE, "; it looks like a PCIe slot of Gen4 x16 or Gen5 x8"
    return causes.RDMA_SLOW, ""


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
        return error("RunTruncated", f"{name}: its output ends before the table does")
    meant = meaning(failure)
    reason = f"{name} stopped: {failure.text}" + (f" ({meant})" if meant else "")
    return error("LaunchFailed" if run.state is State.LAUNCH_FAILED else "RunCrashed", reason)
