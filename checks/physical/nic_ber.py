"""The link's bit errors are few, and forward error correction mends all of them.

Why: A cable or optic that nears its end shows in the rate of raw errors long before the link
flaps. Once correction no longer keeps up, packets are lost and every ring stutters.
Reads: ``mlxlink -d PCI -c --json``, or ``mstlink`` of mstflint (root). One verdict for each rail.
By hand: ``mlxlink -d PCI -m -c``: "Raw Physical BER", "Effective Physical BER" and
"Recommendation".
Mend: clean and reseat; then the cable, the optic, the other end's optic, one at a time, and clear
the counters (``mlxlink -d PCI --pc``) to see whether it helped.
On the switch: the same counters of its port: errors are counted where they arrive, so a bad
transmitter shows at the other end.
Healthy though odd: raw errors grow all the time on PAM4 links, correction is made for them.
"Bad signal integrity" with raw BER below 1e-7 and nothing uncorrected is harmless. 15E-255 is the
tool's zero. Counters run since they were cleared: an old storm still shows. Cards of other vendors
have no such tool.
"""

from __future__ import annotations

from commcheck.check import (
    Check,
    Explained,
    Nothing,
    failed,
    first_of,
    limit,
    passed,
    reads,
    undecidable,
    warned,
)
from commcheck.formats.mlxlink import MLXLINK, MSTLINK, Mlxlink
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The link as the firmware sees it."""

    link: Mlxlink = reads(first_of(MLXLINK, MSTLINK))


@dataclass(frozen=True, slots=True)
class Limits:
    """Errors per bit."""

    raw_ber: float = limit(
        1e-5, unit="errors a bit, raw", source="NVIDIA mlxlink guide: the limit at PAM4 speeds"
    )
    harmless_raw_ber: float = limit(
        1e-7, unit="errors a bit, raw", source="practice of large operators: harmless below"
    )
    effective_ber: float = limit(
        1e-15, unit="errors a bit, after correction", source="NVIDIA mlxlink guide"
    )


CLEAN = Remedy(
    command="mlxlink -d {pci} -m -c",
    driver="mlx5_core",
    effect=Words(
        "Shows the errors of each lane and the module's power. Then clean both connectors and "
        "reseat; replace cable or optic one part at a time.",
        "显示各通道误码与光功率。随后清洁两端连接器并重新插拔；逐件更换线缆或光模块。",
    ),
    precondition=Words(
        "Reading is free; unplugging drops the link: host drained.",
        "读取无影响；拔插会断链：主机需已排空。",
    ),
)
CLEAR = Remedy(
    command="mlxlink -d {pci} --pc",
    driver="mlx5_core",
    effect=Words(
        "Clears the counters, so that the next reading shows the present only.",
        "清零计数器，使下次读数只反映当前状态。",
    ),
    precondition=Words(
        "The values are noted; monitoring that uses them knows.",
        "已记录当前数值；依赖这些计数的监控已知晓。",
    ),
)

UNCORRECTED = Cause(
    slug="ber-uncorrected",
    title=Words("Bit errors that FEC cannot mend", "存在 FEC 无法纠正的误码"),
    meaning=Words(
        "Correction does not keep up: packets are lost. Cable, optic or connector is failing.",
        "纠错已跟不上：正在丢包。线缆、光模块或连接器即将失效。",
    ),
    remedies=(CLEAN, CLEAR),
)
RAW_HIGH = Cause(
    slug="ber-raw-high",
    title=Words("Raw bit errors above the limit", "原始误码率超限"),
    meaning=Words(
        "Still corrected, with little margin left: it will lose packets when it warms up or ages.",
        "目前仍可纠正，但余量很小：升温或老化后将开始丢包。",
    ),
    remedies=(CLEAN, CLEAR),
)
COMPLAINS = Cause(
    slug="ber-firmware-complains",
    title=Words("Firmware complains of the link", "固件提示链路异常"),
    meaning=Words(
        "The firmware's recommendation is not clean, while the error rates are within their "
        "limits: watch it.",
        "固件给出异常提示，但误码率仍在限值内：请持续观察。",
    ),
    remedies=(CLEAN,),
)

FINE = "No issue was observed"


def judge(seen: Seen, rail: Rail, _want: Nothing, limits: Limits) -> Verdict:
    """Uncorrected first, then the raw rate, then the firmware's own opinion."""
    link = seen.link
    raw, effective, errors = link.raw_ber, link.effective_ber, link.effective_errors
    if raw is None or effective is None:
        return undecidable(
            f"mlxlink tells no error rates of {rail.label}: it is {link.state}, "
            f"{link.recommendation}"
        )
    measured = {"raw_ber": raw, "effective_ber": effective, "effective_errors": errors}
    says = f"{rail.label} has raw BER {raw:.0e}, effective BER {effective:.0e}"
    if errors:
        says += f", {errors} uncorrected"
    pci = rail.pci or "?"
    if effective > limits.effective_ber:
        reason = f"{says}, want at most {limits.effective_ber:.0e} effective"
        return failed(UNCORRECTED, reason, measured=measured, pci=pci)
    if raw > limits.raw_ber:
        reason = f"{says}, want at most {limits.raw_ber:.0e} raw"
        return failed(RAW_HIGH, reason, measured=measured, pci=pci)
    if link.recommendation == FINE and not errors:
        return passed(says, measured=measured)
    word = link.recommendation if link.recommendation != FINE else "uncorrected errors before"
    harmless = ", harmless at this rate" if raw <= limits.harmless_raw_ber else ""
    return warned(COMPLAINS, f"{says}: {word}{harmless}", measured=measured, pci=pci)


def not_applicable(rail: Rail) -> str | None:
    """The tools are of one vendor; what they show belongs to the port."""
    if rail.driver not in (None, "mlx5_core"):
        return f"{rail.label} is driven by {rail.driver}: mlxlink is for NVIDIA cards"
    if rail.is_vf:
        return f"{rail.label} is a virtual function: read this on the host that owns the port"
    return None


CHECK = Check(
    id="physical.nic-ber",
    title=Words("Bit error rates are low", "误码率处于低位"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.rdma-port-active",),
    causes=(UNCORRECTED, RAW_HIGH, COMPLAINS),
    explained_by=(
        Explained("module-fault", "same-rail"),
        Explained("module-rx-power-low", "same-rail"),
        Explained("fec-off", "same-rail", of=frozenset({UNCORRECTED.slug})),
    ),
    platforms=frozenset({"gpu-roce", "gpu-ib"}),
    not_applicable=not_applicable,
)
