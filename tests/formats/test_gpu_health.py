"""``nvidia-smi``: modes, memory, power, fabric, replaced rows and link errors of GPUs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from commcheck.check import Reader
from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.nvidia_affinity import NVIDIA_AFFINITY
from commcheck.formats.nvidia_fabric import NVIDIA_FABRIC, FabricGpu
from commcheck.formats.nvidia_fabric_health import NVIDIA_FABRIC_HEALTH, FabricHealth
from commcheck.formats.nvidia_gpu import NVIDIA_GPU, NvidiaGpu
from commcheck.formats.nvidia_pcie import NVIDIA_PCIE
from commcheck.formats.nvidia_recovery import NVIDIA_RECOVERY, RecoveryGpu
from commcheck.formats.nvidia_remap import NVIDIA_REMAP, RemapGpu
from commcheck.formats.nvidia_slowed import NVIDIA_SLOWED, SlowedGpu
from commcheck.formats.nvlink_errors import NVLINK_ERRORS

RECORDED = Path(__file__).parents[1] / "recorded"


def text(name: str) -> str:
    return (RECORDED / name).read_text()


def query(name: str) -> tuple[NvidiaGpu, ...]:
    return NVIDIA_GPU.parse(Output(text(f"gpu-health/{name}.txt")))


def test_one_call_tells_health_and_pcie() -> None:
    assert NVIDIA_GPU.commands == NVIDIA_PCIE.commands
    pcie = NVIDIA_PCIE.parse(Output(text("gpu-health/query-h100-590.txt")))
    assert [(gpu.gen, gpu.width, gpu.is_idle) for gpu in pcie] == [(5, 16, False)] * 8


def test_a_busy_gpu() -> None:
    gpus = query("query-h100-590")
    assert len(gpus) == 8
    assert gpus[5] == NvidiaGpu(
        index=5,
        name="NVIDIA H100 80GB HBM3",
        pci="00000000:c3:00.0",
        load_percent=98,
        persistence=True,
        compute_mode="Default",
        mig=False,
        ecc=True,
        uncorrected=0,
        retirement_pending=None,
        temperature_c=63,
        limit_watts=700.0,
        default_watts=700.0,
        enforced_watts=700.0,
        slowed_by=4,
    )


def test_older_names_and_older_gpus() -> None:
    assert {gpu.slowed_by for gpu in query("query-a100-470")} == {1}
    v100 = query("query-v100-450")[0]
    assert (v100.mig, v100.retirement_pending) == (None, False)


def test_a_corrupted_inforom_spoils_no_answer() -> None:
    whole = Output(text("gpu-health/query-h100-590.txt"))
    worn = f"{whole.text}WARNING: infoROM is corrupted at gpu 00000000:C3:00.0\n"
    for reader in (NVIDIA_GPU, NVIDIA_PCIE):
        assert reader.parse(Output(worn, rc=14)) == reader.parse(whole)
    with pytest.raises(CommandFailed, match="exit code 14"):
        NVIDIA_GPU.parse(Output(whole.text, rc=14))


def test_what_is_not_told_is_none() -> None:
    (gpu,) = query("query-guest")
    assert (gpu.uncorrected, gpu.limit_watts, gpu.slowed_by, gpu.ecc) == (None,) * 4


def test_a_gpu_that_wants_a_reset() -> None:
    assert [gpu.needs_reset for gpu in query("query-h100-requires-reset")].count(True) == 1


@pytest.mark.parametrize(
    ("name", "index", "gpu"),
    [
        ("fabric-h100", 0, FabricGpu(0, "Completed", "Success", 0)),
        ("fabric-in-progress", 7, FabricGpu(7, "In Progress", None, 0)),
        ("fabric-insufficient", 3, FabricGpu(3, "Completed", "Insufficient Resources", 0)),
        ("fabric-none", 0, FabricGpu(0, None, None, 0)),
        ("fabric-confidential", 1, FabricGpu(1, "Completed", "Success", 80994)),
    ],
)
def test_fabric(name: str, index: int, gpu: FabricGpu) -> None:
    gpus = NVIDIA_FABRIC.parse(Output(text(f"gpu-health/{name}.txt")))
    assert (len(gpus), gpus[index]) == (8, gpu)


@pytest.mark.parametrize(
    ("name", "gpus", "told"),
    [
        ("gb300-healthy", 4, 6),
        ("gb300-degraded", 4, 6),
        ("b200-untold", 2, 0),
    ],
)
def test_fabric_health(name: str, gpus: int, told: int) -> None:
    found = NVIDIA_FABRIC_HEALTH.parse(Output(text(f"gpu-health/q-{name}.txt")))
    assert [gpu.index for gpu in found] == list(range(gpus))
    assert {len(gpu.told) for gpu in found} == {told}


def test_a_driver_without_health_in_a_whole_answer() -> None:
    old = re.sub(r"(?m)^ {8}Health\n(?: {12}.*\n)+", "", text("gpu-health/q-b200-untold.txt"))
    assert NVIDIA_FABRIC_HEALTH.parse(Output(old)) == (FabricHealth(0, ()), FabricHealth(1, ()))
    narrow = re.sub(r" {13}: ", ": ", text("gpu-health/q-gb300-degraded.txt"))
    assert NVIDIA_FABRIC_HEALTH.parse(Output(narrow))[2].told[:2] == (
        ("Summary", "Limited Capacity"),
        ("Bandwidth", "Degraded"),
    )
    cut = text("gpu-health/q-gb300-healthy.txt").rpartition("            Bandwidth")[0]
    with pytest.raises(ParseError, match="whole last GPU"):
        NVIDIA_FABRIC_HEALTH.parse(Output(cut))


def asked(name: str) -> tuple[RecoveryGpu, ...]:
    return NVIDIA_RECOVERY.parse(Output(text(f"gpu-health/q-{name}.txt")))


def test_what_the_driver_asks_for() -> None:
    assert [gpu.action for gpu in asked("h100-well")] == ["", ""]
    assert [gpu.action for gpu in asked("h100-reset")] == ["", "Reset"]
    assert [gpu.action for gpu in asked("h100-550")] == ["", "Drain and Reset"]
    assert {gpu.action for gpu in asked("gb300-healthy")} == {None}
    worn = asked("h100-worn")
    assert worn[0] == RecoveryGpu(0, "00000000:1b:00.0", "", False, False, ("memory channel",))
    assert worn[1] == RecoveryGpu(1, "00000000:43:00.0", "", True, True)


def test_how_long_it_was_slowed() -> None:
    def slowed(name: str) -> tuple[SlowedGpu, ...]:
        return NVIDIA_SLOWED.parse(Output(text(f"gpu-health/q-{name}.txt")))

    assert slowed("h100-slowed") == (SlowedGpu(0, 599.0, 0.0), SlowedGpu(1, 1020.0, 780.0))
    assert slowed("h100-well") == (SlowedGpu(0, None, None), SlowedGpu(1, None, None))


def test_an_older_driver_refuses_the_fabric() -> None:
    with pytest.raises(CommandFailed, match="not a valid field"):
        NVIDIA_FABRIC.parse(Output(text("gpu-health/fabric-old-driver.txt"), rc=2))


def test_replaced_rows() -> None:
    rows = NVIDIA_REMAP.parse(Output(text("gpu-health/remap-failed.txt")))
    assert rows[6] == RemapGpu("00000000:d1:00.0", 12, 512, False, True)
    assert NVIDIA_REMAP.parse(Output(text("gpu-health/remap-none.txt"))) == ()
    with_mig = NVIDIA_REMAP.parse(Output(text("gpu-health/remap-mig.txt")))
    assert {(row.pending, row.failure, row.uncorrectable) for row in with_mig} == {(None,) * 3}


def test_link_errors() -> None:
    links = NVLINK_ERRORS.parse(Output(text("gpu-health/nvlink-errors-noisy.txt")))
    assert len(links) == 36
    noisy = next(link for link in links if (link.gpu, link.link) == (1, 5))
    assert dict(noisy.counts) == {
        "Replay Errors": 88120,
        "Recovery Errors": 6,
        "CRC Errors": 912,
    }
    of_b200 = NVLINK_ERRORS.parse(Output(text("gpu-health/nvlink-errors-b200.txt")))
    assert len(of_b200) == 18
    assert of_b200[0].get("Effective Errors") == 0
    assert of_b200[0].get("Effective BER") is None
    assert NVLINK_ERRORS.parse(Output(text("gpu-health/nvlink-errors-pcie-card.txt"))) == ()


def test_inactive_links_count_nothing() -> None:
    whole = text("gpu-health/nvlink-errors-h100.txt")
    one = "".join(f"\t Link 7: {name} Errors: 0\n" for name in ("Replay", "Recovery", "CRC"))
    links = NVLINK_ERRORS.parse(Output(whole.replace(one, "\t Link 7: <inactive>\n", 1)))
    assert len(links) == 35
    dead = "NVML: Unable to retrieve NVLink information as all links are inActive\n"
    gpu, _, _ = whole.partition("\t Link 0")
    assert NVLINK_ERRORS.parse(Output(gpu + dead)) == ()


def test_numa_nodes_of_gpus() -> None:
    places = NVIDIA_AFFINITY.parse(Output(text("nvidia-smi/topo-h100-good.txt")))
    assert [(place.cpus, place.numa) for place in places] == [("0-47,96-143", "0")] * 4 + [
        ("48-95,144-191", "1")
    ] * 4
    places = NVIDIA_AFFINITY.parse(Output(text("gpu-health/topo-no-numa.txt")))
    assert {place.numa for place in places} == {"N/A"}
    old = text("nvidia-smi/topo-h100-good.txt").replace("\tNUMA Affinity\tGPU NUMA ID", "")
    assert {place.numa for place in NVIDIA_AFFINITY.parse(Output(old))} == {None}


ALL: tuple[Reader[Any], ...] = (
    NVIDIA_GPU,
    NVIDIA_FABRIC,
    NVIDIA_FABRIC_HEALTH,
    NVIDIA_REMAP,
    NVLINK_ERRORS,
    NVIDIA_AFFINITY,
)


@pytest.mark.parametrize("reader", ALL, ids=lambda reader: reader.tool)
def test_a_failing_tool_and_foreign_words(reader: Reader[Any]) -> None:
    with pytest.raises(CommandFailed, match="exit code 9"):
        reader.parse(Output(text("nvidia-smi/no-driver.txt"), rc=9))
    for foreign in ("", "index\n", "GPU 0\n", "No devices were found\n", "{}\n"):
        with pytest.raises(ParseError):
            reader.parse(Output(foreign))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n3, ", "\n4, "),  # a number twice
        ("700.00 W", "700.00 kW"),
        ("Default", "Defaul\ufffd"),
        ("0x0000000000000004", "0x4"),
        (", 98 %", ""),
        ("index, ", ""),
    ],
)
def test_a_damaged_row_is_refused(old: str, new: str) -> None:
    whole = text("gpu-health/query-h100-590.txt")
    assert old in whole
    with pytest.raises(ParseError):
        NVIDIA_GPU.parse(Output(whole.replace(old, new, 1)))
