"""physical.rdma-device-count"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.rdma_device_count import CHECK, HCA_MISSING, NO_DEVICE
from commcheck.model import Cause, Machine, Rail, Status


@pytest.mark.parametrize("platform", ["gpu-roce", "gpu-ib", "unknown"])
def test_a_rail_that_is_there_passes_even_when_down(judged: Any, rail: Rail, platform: str) -> None:
    down = Rail(1, "mlx5_1", state="DOWN", netdev="ens2np0", fabric=True)
    finding = judged(CHECK, machine=Machine("gpu-01", platform, rails=(rail, down)))
    assert finding.verdict.status is Status.PASS


@pytest.mark.parametrize(
    ("absent", "nics", "cause", "says"),
    [
        (Rail(7, "mlx5_7", present=False), ["mlx5_7"], HCA_MISSING, "no mlx5_7 on this host, want"),
        (Rail(7, "mlx5_7", 2, present=False), ["mlx5_7/2"], HCA_MISSING, "no mlx5_7/2 on"),
        (Rail(0, "none", present=False), None, NO_DEVICE, "no RDMA device at all"),
    ],
)
def test_a_rail_that_is_not_there_fails(
    judged: Any, absent: Rail, nics: object, cause: Cause, says: str
) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(absent,))
    finding = judged(CHECK, machine=machine, nics=nics)
    assert finding.verdict.status is Status.FAIL
    assert finding.verdict.cause is cause
    assert says in finding.verdict.reason
    assert finding.verdict.remedies
    # NVIDIA's stack is not restarted on an instance that has EFA.
    aws = judged(CHECK, machine=Machine("gpu-01", "gpu-efa", rails=(absent,)), nics=nics).verdict
    assert aws.cause is cause
    assert not any("openibd" in remedy.command for remedy in aws.remedies)
