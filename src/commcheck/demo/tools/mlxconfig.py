"""``mlxconfig``: the firmware's setting that says who owns the port of a BlueField."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState, NicState

TOOLS: Final = ("mlxconfig",)

_BLUEFIELD_3: Final = 0xA2DC


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of every BlueField."""
    for nic in host.ports:
        if nic.present and nic.part_id == _BLUEFIELD_3:
            argv = ("mlxconfig", "-d", nic.pci, "q", "INTERNAL_CPU_OFFLOAD_ENGINE")
            yield Answer(argv, mlxconfig(nic))


def mlxconfig(nic: NicState) -> str:
    """The one setting, with the head of any answer."""
    value = "ENABLED(0)" if nic.embedded_cpu else "DISABLED(1)"
    return (
        "\nDevice #1:\n----------\n\n"
        "Device type:        BlueField3          \n"
        "Name:               900-9D3D4-00EN-HA0_Ax\n"
        "Description:        NVIDIA BlueField-3 B3140H E-series FHHL SuperNIC\n"
        f"Device:             {nic.pci:<20}\n\n"
        f"{'Configurations:':<61}{'Next Boot':<20}\n"
        f"        {'INTERNAL_CPU_OFFLOAD_ENGINE':<53}{value:<20}\n"
    )
