"""What Xid codes ask for."""

from __future__ import annotations

import pytest

from commcheck.xids import FAULTS, XIDS, Ask, is_recovered, look_up

TO_NONE = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
TO_RESET = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
TO_REBOOT = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"


@pytest.mark.parametrize(
    ("code", "text", "ask"),
    [
        (13, "", Ask.RESTART_JOB),
        (31, "", Ask.RESTART_JOB),
        (43, "", Ask.RESTART_JOB),
        (45, "", Ask.NOTHING),
        (48, "", Ask.MEMORY),
        (63, "", Ask.NOTHING),
        (64, "", Ask.MEMORY),
        (74, "", Ask.LINK),
        (79, "", Ask.POWER_CYCLE),
        (92, "", Ask.WATCH),
        (94, "", Ask.WATCH),
        (95, "", Ask.MEMORY),
        (119, "", Ask.RESET),
        (149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 08", Ask.LINK),
        (145, "RLW_CTRL  Nonfatal XC0 i0 Link 08", Ask.WATCH),
        (154, TO_NONE, Ask.NOTHING),
        (154, TO_RESET, Ask.RESET),
        (154, TO_REBOOT, Ask.REBOOT),
        (154, "something new", Ask.WATCH),
        (999, "", Ask.WATCH),
    ],
)
def test_codes(code: int, text: str, ask: Ask) -> None:
    assert look_up(code, text, of_switch=False).ask is ask


def test_switches() -> None:
    assert look_up(22013, "Fatal, Link 30", of_switch=True).ask is Ask.LINK
    assert look_up(12028, "Non-fatal, Link 32", of_switch=True).ask is Ask.NOTHING
    assert look_up(79, "", of_switch=True).ask is Ask.NOTHING


def test_recovery() -> None:
    assert is_recovered(154, TO_NONE)
    assert not is_recovered(154, TO_RESET)
    assert not is_recovered(119, TO_NONE)


def test_the_table_is_sound() -> None:
    assert all(1 <= code <= 200 and xid.meaning for code, xid in XIDS.items())
    assert len([xid for xid in XIDS.values() if xid.ask in FAULTS]) >= 20
