"""A BlueField is in NIC mode, in which this host owns the port and its settings.

Why: In DPU mode the Arm cores on the card own PFC, trust, the DSCP map and DCBX. The host's tools
still answer, and what they say is not what the port does; set from both sides the result is
undefined.
Reads: ``mlxconfig -d PCI q INTERNAL_CPU_OFFLOAD_ENGINE``, or ``mstconfig`` of mstflint (root), on
BlueField cards alone. One verdict for each rail.
By hand: the same; ENABLED(0) is DPU mode, DISABLED(1) NIC mode. It is the setting of the next
boot: one that was changed and waits for a power cycle shows as if it were in force.
Mend: nothing here. In DPU mode look at QoS on the Arm side (``ssh`` to the card, ``mlnx_qos`` on
its uplink ``p0``), and declare ``commcheck_bluefield_mode: dpu``: the checks of QoS then do not
apply on the host. Changing the mode is a firmware setting and a power cycle.
On the switch: nothing; it sees the same port in either mode.
Healthy though odd: DPU mode is what DPU boards are delivered in, and right where the Arm side is
looked after. SuperNIC boards come in NIC mode and are judged as a ConnectX.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    expects,
    first_of,
    not_applicable,
    passed,
    tries,
    undecidable,
)
from commcheck.errors import CommandFailed
from commcheck.expect import BLUEFIELD_MODE
from commcheck.formats.mlxconfig import MLXCONFIG_ARM, MSTCONFIG_ARM, OFFLOAD_ENGINE, Mlxconfig
from commcheck.lazy import dataclass
from commcheck.model import Rail, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The firmware's setting, from whichever tool is there."""

    settings: Mlxconfig | Unread = tries(first_of(MLXCONFIG_ARM, MSTCONFIG_ARM))


@dataclass(frozen=True, slots=True)
class Want:
    """The mode that the inventory declares."""

    mode: Wanted[str | None] = expects(BLUEFIELD_MODE)


MODES: Final = {"ENABLED": "dpu", "DISABLED": "nic"}
"""Of INTERNAL_CPU_OFFLOAD_ENGINE (NVIDIA BlueField, Modes of Operation)."""

NAMES: Final = {"dpu": "DPU mode", "nic": "NIC mode"}


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """Only in NIC mode are the checks of QoS the host's."""
    declared = want.mode.value
    if isinstance(seen.settings, Unread):
        if declared is None:
            raise CommandFailed(
                f"{rail.label} is a BlueField, and nothing tells its mode: {seen.settings.reason}",
                "install mstflint, or declare commcheck_bluefield_mode: nic or dpu",
            )
        return not_applicable(
            f"{rail.label} is declared a BlueField in {NAMES[declared]}: {want.mode.origin}"
        )
    found = MODES.get(seen.settings.value(OFFLOAD_ENGINE) or "")
    if found is None:
        raise CommandFailed(f"{rail.label} is a BlueField, and its firmware tells no mode")
    if declared not in (None, found):
        return undecidable(
            f"undecidable: {rail.label} is a BlueField in {NAMES[found]}, and "
            f"{NAMES[str(declared)]} is declared: {want.mode.origin}"
        )
    if found == "dpu" and declared is None:
        return undecidable(
            f"undecidable: {rail.label} is a BlueField in DPU mode: its Arm side owns PFC, trust "
            "and the DSCP map",
            turn_on="look there, and declare commcheck_bluefield_mode: dpu",
        )
    if found == "dpu":
        return not_applicable(f"{rail.label} is a BlueField in DPU mode, as declared")
    return passed(f"{rail.label} is a BlueField in NIC mode", measured={"mode": found})


def bluefield_only(rail: Rail) -> str | None:
    """Other cards have no Arm side; of an absent one nothing is known."""
    return None if rail.is_bluefield else f"{rail.label} is no BlueField"


CHECK = Check(
    id="physical.bluefield-mode",
    title=Words("BlueField leaves the port to the host", "BlueField 端口由主机管理"),
    subject=Rail,
    seen=Seen,
    want=Want,
    judge=judge,
    platforms=frozenset({"gpu-roce"}),
    not_applicable=bluefield_only,
)
