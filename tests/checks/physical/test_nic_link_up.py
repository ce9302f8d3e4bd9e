"""physical.nic-link-up"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.nic_link_up import (
    BAD_SIGNAL,
    BY_REASON,
    CHECK,
    LINK_DOWN,
    MODULE_FAULT,
    NO_CABLE,
    TRAINING,
)
from commcheck.model import Cause, Kind, Machine, Rail, Status


@pytest.mark.parametrize(
    ("name", "speed_gbits"),
    [
        ("link-400g-good.txt", 400),
        ("link-400g-nonroot.txt", 400),
        ("link-100g-on-400g-port.txt", 100),  # the speed is another check's
        ("link-200g-bnxt.txt", 200),
        ("link-old-ioctl-layout.txt", 100),
    ],
)
def test_link(judged: Any, name: str, speed_gbits: float) -> None:
    verdict = judged(CHECK, {"ethtool": (f"ethtool/{name}", 0)}).verdict
    assert verdict.status is Status.PASS
    assert verdict.measured == {"speed_gbits": speed_gbits}


@pytest.mark.parametrize(
    ("name", "cause", "says"),
    [
        ("link-down-no-cable.txt", NO_CABLE, "no link: No cable"),
        ("link-down-plain-old-kernel.txt", LINK_DOWN, "mlx5_0 (ens4np0) has no link, want one"),
        ("link-down-training.txt", TRAINING, "Remote side is not ready yet"),
    ],
)
def test_no_link(judged: Any, name: str, cause: Cause, says: str) -> None:
    verdict = judged(CHECK, {"ethtool": (f"ethtool/{name}", 0)}).verdict
    assert verdict.status is Status.FAIL
    assert verdict.cause is cause
    assert says in verdict.reason


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("Overheat", MODULE_FAULT),
        ("Bad signal integrity", BAD_SIGNAL),
        ("Autoneg", TRAINING),
        ("42", LINK_DOWN),
    ],
)
def test_the_reason_tells_the_cause(judged: Any, reason: str, cause: Cause) -> None:
    said = f"Settings for ens1np0:\n\tLink detected: no ({reason})\n"
    verdict = judged(CHECK, {"ethtool": (said, 0)}).verdict
    assert verdict.cause is cause
    assert "{" not in "".join(remedy.command for remedy in verdict.remedies)
    assert BY_REASON.get(reason, LINK_DOWN) is cause


def test_virtio_has_a_link_without_a_speed(judged: Any) -> None:
    said = "Settings for eth0:\n\tSpeed: Unknown!\n\tLink detected: yes\n"
    verdict = judged(CHECK, {"ethtool": (said, 0)}).verdict
    assert (verdict.status, verdict.measured) == (Status.PASS, {})


def test_a_dark_port_that_nothing_calls_a_rail_is_undecidable(judged: Any, rail: Rail) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, fabric=None),))
    dark = {"ethtool": ("ethtool/link-down-no-cable.txt", 0)}
    verdict = judged(CHECK, dark, machine=machine).verdict
    assert (verdict.status, verdict.kind) == (Status.SKIP, Kind.UNDECIDABLE)
    assert "declare commcheck_nics" in verdict.reason
    lit = {"ethtool": ("ethtool/link-400g-good.txt", 0)}
    assert judged(CHECK, lit, machine=machine).verdict.status is Status.PASS


@pytest.mark.parametrize(
    ("text", "rc", "error"),
    [
        ("ethtool/command-not-found.txt", 127, "CommandMissing"),
        ("ethtool/sbin-not-in-path.txt", 127, "CommandMissing"),
        ("ethtool/no-such-device.txt", 75, "CommandFailed"),
        ("Settings for ens1np0:\n\tLink det", 0, "ParseError"),
    ],
)
def test_what_cannot_be_read_is_no_link_down(judged: Any, text: str, rc: int, error: str) -> None:
    verdict = judged(CHECK, {"ethtool": (text, rc)}).verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, error)


def test_infiniband_is_none_of_its_business(judged: Any, rail: Rail) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, link_layer="InfiniBand"),))
    assert judged(CHECK, machine=machine).verdict.kind is Kind.NOT_APPLICABLE
