"""What a tool answers without telling what is asked is undecidable, and where it cannot be, none of
a check's business; never a pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.library import running_job
from checks.physical import (
    gpu_row_remap,
    ib_consistency,
    ib_counters,
    ib_pkey,
    ib_subnet_manager,
    nic_link_flaps,
    qos_ratelimit,
    rdma_rate,
    roce_congestion,
    roce_retransmit,
)
from commcheck.check import AnyCheck, Span, Unread, Watched, keys_of
from commcheck.counters import Counters
from commcheck.formats.nvidia_gpu import NvidiaGpu
from commcheck.formats.nvidia_remap import RemapGpu
from commcheck.formats.qos import Qos
from commcheck.formats.rdma_port import RdmaPort
from commcheck.model import Host, Kind, Machine, Status
from commcheck.nccl.processes import Users
from tests.checks.conftest import RAIL

PORT = RdmaPort("mlx5_0", 1, state="ACTIVE", phys_state="LinkUp")
SPARE = RemapGpu("A", 0, 0, pending=False, failure=False)
GPU = NvidiaGpu(0, "H100", "A")
NOTHING = Watched(Span(Counters({}), Counters({}), 5.0))
UNREAD = Unread("not there", "CommandMissing")
OPEN, NONE = Kind.UNDECIDABLE, Kind.NOT_APPLICABLE


def verdict_of(check: AnyCheck, seen: object, driver: str = "mlx5_core") -> Any:
    rail = replace(RAIL, driver=driver)
    machine = Machine("gpu-01", "gpu-roce", rails=(rail,))
    keys = keys_of(check.want).items()
    want = {name: key.on(Host("gpu-01"), machine.platform) for name, key in keys}
    subject = machine if check.subject is Machine else rail
    (verdict,) = check.verdicts(seen, subject, check.want(**want), check.limits())
    return verdict


@pytest.mark.parametrize(
    ("check", "seen", "kind", "says"),
    [
        (ib_consistency, (PORT,), OPEN, "manager and partitions"),
        (ib_pkey, (PORT, ()), OPEN, "partition keys"),
        (ib_subnet_manager, (PORT,), OPEN, "lids"),
        (ib_subnet_manager, (replace(PORT, phys_state="Polling"),), NONE, "no link"),
        (rdma_rate, (PORT, UNREAD), OPEN, "the rate"),
        (qos_ratelimit, (Qos(frozenset()), PORT), OPEN, "class of priority 3"),
        (gpu_row_remap, ((SPARE,), (GPU, replace(GPU, index=1, pci="B")), UNREAD), OPEN, "gpu1"),
        (running_job, (Users((), hidden=True),), OPEN, "could not be"),
    ],
)
def test_of_one_answer(check: Any, seen: tuple[Any, ...], kind: Kind, says: str) -> None:
    verdict = verdict_of(check.CHECK, check.Seen(*seen))
    assert (verdict.status, verdict.kind) == (Status.SKIP, kind)
    assert says in verdict.reason


@pytest.mark.parametrize("check", [ib_counters, nic_link_flaps, roce_congestion, roce_retransmit])
@pytest.mark.parametrize(("driver", "kind"), [("mlx5_core", OPEN), ("other", NONE)])
def test_of_counters(check: Any, driver: str, kind: Kind) -> None:
    """Of a driver whose names are known, a counter that is missing is a new layout."""
    seen = (NOTHING, UNREAD) if check is roce_congestion else (NOTHING,)
    verdict = verdict_of(check.CHECK, check.Seen(*seen), driver)
    assert (verdict.status, verdict.kind) == (Status.SKIP, kind)
