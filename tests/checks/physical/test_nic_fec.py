"""physical.nic-fec"""

from __future__ import annotations

from typing import Any

from checks.physical.nic_fec import CHECK, OFF, OFF_NRZ
from commcheck.model import Kind, Status


def said(fec: str, link: str = "link-400g-good.txt", rc: int = 0) -> dict[str, tuple[str, int]]:
    return {"ethtool --show-fec": (fec, rc), "ethtool ens1np0": (f"ethtool/{link}", 0)}


def test_works(judged: Any) -> None:
    assert judged(CHECK, said("ethtool/fec-rs.txt")).verdict.status is Status.PASS
    llrs = (
        "FEC parameters for ens1np0:\nConfigured FEC encodings: Auto\nActive FEC encoding: LLRS\n"
    )
    assert judged(CHECK, said(llrs)).verdict.status is Status.PASS


def test_off_on_pam4_lanes(judged: Any) -> None:
    verdict = judged(CHECK, said("ethtool/fec-off.txt")).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, OFF)
    assert "400 Gb/s, want RS" in verdict.reason
    # The driver of Thor tells no lanes; 200 Gb/s is PAM4 however many there are.
    thor = judged(CHECK, said("ethtool/fec-off.txt", "link-200g-bnxt.txt")).verdict
    assert thor.cause is OFF


def test_off_on_four_nrz_lanes_is_a_warning(judged: Any) -> None:
    verdict = judged(CHECK, said("ethtool/fec-off.txt", "link-old-ioctl-layout.txt")).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, OFF_NRZ)


def test_a_driver_without_the_setting(judged: Any) -> None:
    answers = said("netlink error: Operation not supported\n", rc=95)
    assert judged(CHECK, answers).verdict.kind is Kind.NOT_APPLICABLE


def test_not_told_is_undecided(judged: Any) -> None:
    text = "FEC parameters for ens1np0:\nConfigured FEC encodings: Auto\n"
    answers = said(f"{text}Active FEC encoding: Not reported\n")
    assert judged(CHECK, answers).verdict.kind is Kind.UNDECIDABLE


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, said("garbage\n")).verdict.status is Status.ERROR
