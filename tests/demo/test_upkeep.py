"""The tools around the GPUs of a simulated host, against recordings of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.command import Output
from commcheck.demo.parts import Answer, answers
from commcheck.demo.state import HostState, healthy
from commcheck.demo.tools import chronyc, nvidia_care
from commcheck.demo.upkeep import GpuCare
from commcheck.formats.kernel_xid import JOURNAL_XIDS
from commcheck.formats.nvidia_fabric import COLUMNS, NVIDIA_FABRIC
from commcheck.formats.nvidia_fabric_health import NVIDIA_FABRIC_HEALTH
from commcheck.formats.shm import DF_SHM, Shm

RECORDED = Path(__file__).parents[1] / "recorded"
HOST = healthy(1)


def answer(host: HostState, argv: tuple[str, ...], queries: tuple[str, ...] = ()) -> Answer:
    (found,) = [each for each in answers(host, queries) if each.argv == argv]
    return found


@pytest.mark.parametrize(
    ("name", "offset_s", "synchronized"),
    [("good", -0.000012345, True), ("off", 0.248110332, True)],
)
def test_chrony_byte_for_byte(name: str, offset_s: float, synchronized: bool) -> None:
    recorded = (RECORDED / f"host-health/chronyc-{name}.txt").read_text()
    assert chronyc.tracking(offset_s, synchronized=synchronized) == recorded


def test_link_errors_byte_for_byte() -> None:
    gpus = [
        replace(gpu, uuid=f"GPU-0000000{at}-1111-2222-3333-44444444444{at}")
        for at, gpu in enumerate(HOST.gpus[:2])
    ]
    gpus[1] = replace(gpus[1], care=GpuCare(link_errors=(88120, 6, 912)))
    recorded = (RECORDED / "gpu-health/nvlink-errors-noisy.txt").read_text()
    assert nvidia_care.link_errors(tuple(gpus)) == recorded


def test_replaced_rows_byte_for_byte() -> None:
    buses = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
    gpus = tuple(
        replace(gpu, pci=f"0000:{bus}:00.0") for gpu, bus in zip(HOST.gpus, buses, strict=True)
    )
    care = GpuCare(rows_replaced=1, remap_pending=True)
    gpus = (gpus[0], replace(gpus[1], care=care), *gpus[2:])
    recorded = (RECORDED / "gpu-health/remap-pending.txt").read_text()
    assert nvidia_care.remapped_rows(gpus) == recorded


def test_the_fabric_of_a_younger_and_an_older_driver() -> None:
    query = ",".join(COLUMNS)
    argv = ("nvidia-smi", f"--query-gpu={query}", "--format=csv")
    said = answer(HOST, argv, (query,))
    assert said.stdout == (RECORDED / "gpu-health/fabric-h100.txt").read_text()
    assert len(NVIDIA_FABRIC.parse(Output(said.stdout))) == 8
    old = answer(replace(HOST, driver="525.60.13"), argv, (query,))
    assert (old.rc, "not a valid field" in old.stdout) == (2, True)


def test_no_health_of_the_fabric_is_told() -> None:
    said = answer(HOST, NVIDIA_FABRIC_HEALTH.commands[0].argv)
    found = NVIDIA_FABRIC_HEALTH.parse(Output(said.stdout))
    assert [gpu.told for gpu in found] == [()] * 8


def test_what_is_rendered_is_read_again() -> None:
    full = replace(HOST, upkeep=replace(HOST.upkeep, shm_free_kib=12_000))
    shm = answer(full, DF_SHM.commands[0].argv)
    assert DF_SHM.parse(Output(shm.stdout)) == Shm(1_056_628_736, 12_000, "/dev/shm")
    report = (864_000.0 - 60, "NVRM: Xid (PCI:0000:c3:00): 79, GPU has fallen off the bus.")
    lost = replace(HOST, upkeep=replace(HOST.upkeep, xids=(report,)))
    journal = answer(lost, JOURNAL_XIDS.commands[0].argv)
    log = JOURNAL_XIDS.parse(Output(journal.stdout), Output("864000.00 0.00\n"))
    assert log.kernel == HOST.kernel
    assert [(event.code, event.age_s) for event in log.events] == [(79, 60.0)]
