"""physical.clock-sync"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.clock_sync import ALONE, CHECK, FREE, OFF
from commcheck.model import Cause, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")
NO_DAEMON = ("506 Cannot talk to daemon\n", 1)


@pytest.mark.parametrize(
    ("answers", "status", "cause", "says"),
    [
        ({"chronyc": "chronyc-good"}, Status.PASS, None, "clock 0.0123 ms slow by chrony"),
        ({"chronyc": "chronyc-off"}, Status.WARN, OFF, "clock 248 ms fast by chrony, want"),
        ({"chronyc": "chronyc-free"}, Status.WARN, FREE, "chrony says"),
        ({"chronyc": "chronyc-alone"}, Status.WARN, ALONE, "chrony follows the host's own clock"),
        ({"ntpq": "ntpq-alone"}, Status.WARN, ALONE, "ntpd follows"),
        ({"ntpq": "ntpq-good"}, Status.PASS, None, "by ntpd"),
        ({"ntpq": "ntpq-alarm"}, Status.WARN, FREE, "ntpd says"),
        ({"timedatectl": "timedatectl-good"}, Status.PASS, None, "systemd says"),
        ({"timedatectl": "timedatectl-free"}, Status.WARN, FREE, "systemd says"),
    ],
)
def test_whoever_speaks(
    judged: Any, answers: dict[str, str], status: Status, cause: Cause | None, says: str
) -> None:
    said = {tool: (f"host-health/{name}.txt", 0) for tool, name in answers.items()}
    verdict = judged(CHECK, {"chronyc": NO_DAEMON, **said}, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


def test_nobody_speaks(judged: Any) -> None:
    verdict = judged(CHECK, {"chronyc": NO_DAEMON}, machine=ONE).verdict
    assert verdict.status is Status.ERROR
    assert "none of chronyc or ntpq or timedatectl spoke" in verdict.reason
