"""physical.optics-power"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from checks.physical.optics_power import CHECK, DARK, FAULT, FLAGGED, HOT
from commcheck.model import Cause, Kind, Status

GOOD = (Path(__file__).parents[2] / "recorded" / "ethtool" / "module-good.txt").read_text()


def said(text: str, rc: int = 0) -> dict[str, tuple[str, int]]:
    return {"ethtool -m": (text, rc)}


@pytest.mark.parametrize(
    "name", ["module-good.txt", "module-qsfp28-old-layout.txt", "module-qsfp56-sr4.txt"]
)
def test_fine(judged: Any, name: str) -> None:
    assert judged(CHECK, said(f"ethtool/{name}")).verdict.status is Status.PASS


def lane(number: int, *, bias: str, sent: str, received: str) -> str:
    """GOOD with other readings of one of its lanes, as ethtool prints them."""
    text = GOOD
    for key, value in (
        ("Laser tx bias current", bias),
        ("Transmit avg optical power", sent),
        ("Rcvr signal avg optical power", received),
    ):
        text, found = re.subn(rf"({key} \(Channel {number}\) +: ).*", rf"\g<1>{value}", text)
        assert found == 1
    return text


def test_lanes_that_the_module_does_not_have(judged: Any) -> None:
    """ethtool prints eight lanes of every OSFP module: 5 to 8 of one with four read nothing."""
    verdict = judged(CHECK, said(GOOD)).verdict
    assert verdict.status is Status.PASS
    assert "0.18 dBm on its darkest lane of 4" in verdict.reason
    assert verdict.measured["rx_dbm"] == [0.35, 0.42, 0.18, 0.3]


def test_one_lane_of_four(judged: Any) -> None:
    """A 100GBASE-DR1 in a QSFP28 cage: lanes 2 to 4 read nothing."""
    name = Path(__file__).parents[2] / "recorded" / "ethtool" / "module-qsfp28-old-layout.txt"
    one = re.sub(r"(\(Channel [234]\) +: ).* mA", r"\g<1>0.000 mA", name.read_text())
    one = re.sub(r"(\(Channel [234]\) +: ).* dBm", r"\g<1>0.0000 mW / -inf dBm", one)
    verdict = judged(CHECK, said(one)).verdict
    assert verdict.status is Status.PASS
    assert "lane of 1" in verdict.reason


def test_a_half_that_sees_a_little_light_is_not_there_either(judged: Any) -> None:
    noise = "0.0001 mW / -40.00 dBm"
    verdict = judged(CHECK, said(lane(7, bias="0.000 mA", sent=noise, received=noise))).verdict
    assert verdict.status is Status.PASS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # Its laser is on, so the lane is there: nothing comes from the other end.
        (lane(6, bias="6.920 mA", sent="0.0000 mW / -inf dBm", received="0.0000 mW / -inf dBm"),
         "no light on lane 5, 6, 7, 8"),
        (lane(6, bias="0.000 mA", sent="1.2450 mW / 0.95 dBm", received="0.0000 mW / -inf dBm"),
         "no light on lane 5, 6, 7, 8"),
        # Dark both ways, but the half that it belongs to is in use.
        (lane(4, bias="0.000 mA", sent="0.0000 mW / -inf dBm", received="0.0000 mW / -inf dBm"),
         "no light on lane 4, want"),
    ],
)  # fmt: skip
def test_a_dead_lane_is_not_taken_for_one_that_is_not_there(
    judged: Any, text: str, words: str
) -> None:
    verdict = judged(CHECK, said(text)).verdict
    assert verdict.cause is DARK
    assert words in verdict.reason


def test_a_module_that_is_dark_both_ways(judged: Any) -> None:
    """No half is in use: none is left out."""
    off = re.sub(r"(\(Channel \d\) +: ).* mA", r"\g<1>0.000 mA", GOOD)
    off = re.sub(r"(\(Channel \d\) +: ).* dBm", r"\g<1>0.0000 mW / -inf dBm", off)
    verdict = judged(CHECK, said(off)).verdict
    assert verdict.cause is DARK
    assert "no light on lane 1, 2, 3, 4, 5, 6, 7, 8" in verdict.reason


@pytest.mark.parametrize(
    ("name", "cause", "words"),
    [
        ("module-dead-lane.txt", DARK, "lane 2 at -40 dBm, want at least -10 dBm"),
        ("module-dark-inf.txt", DARK, "no light on lane 1, 2, 3, 4"),
        ("module-hot.txt", HOT, "84.11 C"),
        ("module-fault.txt", FAULT, "ModuleFault: TEC runaway"),
    ],
)
def test_wrong(judged: Any, name: str, cause: Cause, words: str) -> None:
    verdict = judged(CHECK, said(f"ethtool/{name}")).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, cause)
    assert words in verdict.reason


def test_a_flag_alone_is_a_warning(judged: Any) -> None:
    """ethtool 6.1 shows the flags of a CMIS lane one lane too late."""
    old = "Laser rx power low alarm    (Channel 2)   : Off"
    assert old in GOOD
    verdict = judged(CHECK, said(GOOD.replace(old, old.replace("Off", "On")))).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, FLAGGED)


def threshold(name: str, value: str) -> str:
    """A line of the thresholds that a module prints."""
    return f"\t{name + ' threshold':<41} : {value}\n"


def heat(alarm: str, warning: str) -> str:
    return (
        GOOD
        + threshold("Module temperature high alarm", f"{alarm} degrees C / 0.00 degrees F")
        + threshold("Module temperature high warning", f"{warning} degrees C / 0.00 degrees F")
    )


def light(alarm: str, warning: str) -> str:
    return (
        GOOD
        + threshold("Laser rx power low alarm", f"0.5000 mW / {alarm} dBm")
        + threshold("Laser rx power low warning", f"0.5000 mW / {warning} dBm")
    )


@pytest.mark.parametrize(
    ("text", "status", "cause", "words"),
    [
        (heat("52.00", "50.00"), Status.FAIL, HOT, "52.03 C, want at most 52"),
        (heat("75.00", "52.00"), Status.WARN, HOT, "52.03 C, above its warning at 52 C"),
        (heat("75.00", "70.00"), Status.PASS, None, "0.18 dBm"),
        # An active cable that leaves its thresholds empty; one that leaves the warning empty.
        (heat("0.00", "0.00"), Status.PASS, None, "0.18 dBm"),
        (heat("75.00", "0.00"), Status.PASS, None, "0.18 dBm"),
        (light("0.21", "0.40"), Status.FAIL, DARK, "lane 3 at 0.18 dBm, want at least 0.21 dBm"),
        (light("-9.00", "0.20"), Status.WARN, DARK,
         "lane 3 at 0.18 dBm, below the module's warning at 0.2 dBm"),
        (light("-9.00", "-7.00"), Status.PASS, None, "0.18 dBm"),
    ],
)  # fmt: skip
def test_beyond_its_alarm_it_fails_and_beyond_its_warning_it_warns(
    judged: Any, text: str, status: Status, cause: Cause | None, words: str
) -> None:
    verdict = judged(CHECK, said(text)).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert words in verdict.reason


def test_an_empty_threshold_hides_no_dark_lane(judged: Any) -> None:
    """0 mW is -inf dBm, and nothing is below that."""
    dark = lane(4, bias="6.92 mA", sent="1.2450 mW / 0.95 dBm", received="0.0000 mW / -inf dBm")
    for name in ("alarm", "warning"):
        dark += threshold(f"Laser rx power low {name}", "0.0000 mW / -inf dBm")
    verdict = judged(CHECK, said(dark)).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, DARK)
    assert "no light on lane 4, want at least -10 dBm" in verdict.reason


def test_a_latched_flag_of_heat_is_a_warning_where_the_module_says_how_hot_is_too_hot(
    judged: Any,
) -> None:
    """Flags stay until they are read: it may have been hot last month."""
    old = "Module temperature high alarm             : Off"
    assert old in GOOD
    verdict = judged(CHECK, said(heat("75.00", "70.00").replace(old, old.replace("Off", "On"))))
    assert (verdict.verdict.status, verdict.verdict.cause) == (Status.WARN, FLAGGED)


def test_an_sfp28_has_one_lane_and_prints_no_number_of_it(judged: Any) -> None:
    head = GOOD[: GOOD.index("\tLaser tx bias")]
    text = head + (
        "\tLaser bias current                        : 6.750 mA\n"
        "\tLaser output power                        : 0.9512 mW / -0.22 dBm\n"
        "\tReceiver signal average optical power     : %s\n"
        "\tLaser rx power low alarm                  : Off\n"
    )
    fine = judged(CHECK, said(text % "0.8822 mW / -0.54 dBm")).verdict
    assert fine.status is Status.PASS
    assert "-0.54 dBm on its darkest lane of 1" in fine.reason
    dark = judged(CHECK, said(text % "0.0001 mW / -40.00 dBm")).verdict
    assert (dark.status, dark.cause) == (Status.FAIL, DARK)


def test_a_lane_far_below_the_others(judged: Any) -> None:
    weak = GOOD.replace("1.0433 mW / 0.18 dBm", "0.2000 mW / -6.99 dBm")
    assert judged(CHECK, said(weak)).verdict.status is Status.PASS
    flag = "Laser rx power low alarm    (Channel 3)   : "
    assert judged(CHECK, said(weak.replace(f"{flag}Off", f"{flag}On"))).verdict.cause is DARK


def test_copper_and_an_empty_cage(judged: Any) -> None:
    copper = "".join(
        line
        for line in GOOD.splitlines(keepends=True)
        if "optical power" not in line and "bias" not in line
    )
    for text in (copper, "ethtool/module-qsfp28-copper.txt"):
        assert judged(CHECK, said(text)).verdict.kind is Kind.NOT_APPLICABLE
    empty = judged(CHECK, said("ethtool/module-absent.txt", 1)).verdict
    assert empty.kind is Kind.NOT_APPLICABLE


def test_without_root_it_is_no_pass(judged: Any) -> None:
    denied = "netlink error: Operation not permitted\n"
    assert judged(CHECK, said(denied, 1)).verdict.error == "CommandFailed"
