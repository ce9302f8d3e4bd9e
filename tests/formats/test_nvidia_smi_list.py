"""``nvidia-smi -L``: lists, MIG, lost GPUs and broken drivers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.nvidia_smi_list import DriverTrouble, Gpu, GpuList, parse

RECORDED = Path(__file__).parents[1] / "recorded" / "nvidia-smi"


def text_of(name: str) -> str:
    return (RECORDED / name).read_text()


def uuid(last: int) -> str:
    return f"GPU-00000000-1111-2222-3333-44444444444{last}"


LIST = text_of("nvlink-pcie-card.txt")  # cards without NVLink: the same lines as -L
TWO = GpuList((Gpu(0, "NVIDIA A10", uuid(0)), Gpu(1, "NVIDIA A10", uuid(1))))


def test_list() -> None:
    assert parse(Output(LIST)) == TWO


def test_list_with_mig_and_warnings() -> None:
    first, second = LIST.splitlines(keepends=True)
    mig = "  MIG 1g.10gb     Device  0: (UUID: MIG-00000000-1111-2222-3333-444444444440)\n"
    warning = "WARNING: infoROM is corrupted at gpu 0000:C3:00.0\n"
    text = f"\x1b[1m{first}{mig}{mig}{second}\x1b[0m{warning}".replace("\n", "\r\n")
    worn = replace(TWO, has_mig=True, corrupted=("0000:c3:00.0",))
    assert parse(Output(text)) == worn
    assert parse(Output(text, rc=14)) == worn
    with pytest.raises(CommandFailed, match="exit code 14"):
        parse(Output(LIST, rc=14))


@pytest.mark.parametrize(
    ("name", "rc", "trouble"),
    [
        ("driver-mismatch.txt", 18, DriverTrouble.MISMATCH),
        ("no-driver.txt", 9, DriverTrouble.NO_DRIVER),
        ("no-devices.txt", 6, DriverTrouble.NO_DEVICES),
    ],
)
@pytest.mark.parametrize("on_stderr", [True, False])
def test_trouble(name: str, rc: int, trouble: DriverTrouble, on_stderr: bool) -> None:
    text = text_of(name)
    output = Output("", text, rc) if on_stderr else Output(text, "", rc)
    assert parse(output) == GpuList(trouble=trouble)


@pytest.mark.parametrize(
    "said",
    [
        text_of("gpu-lost.txt"),
        "Unable to determine the device handle for gpu 0000:C3:00.0: GPU is lost.  Reboot the "
        "system to recover this GPU\n",
    ],
)
@pytest.mark.parametrize("rc", [0, 15, 255])
def test_lost(said: str, rc: int) -> None:
    assert parse(Output(said, "", rc)) == GpuList(lost=("0000:C3:00.0",))
    _, second = LIST.splitlines(keepends=True)
    assert parse(Output(second, said, rc)) == GpuList(TWO.gpus[1:], ("0000:C3:00.0",))


@pytest.mark.parametrize(
    ("named", "lost"),
    [
        ("GPU0000:34:00.0", "0000:34:00.0"),
        ("GPU1: 0000:34:00.0", "0000:34:00.0"),
        ("GPU1", "1"),
    ],
)
def test_a_lost_gpu_by_its_names(named: str, lost: str) -> None:
    said = f"Unable to determine the device handle for {named}: Unknown Error\n"
    assert parse(Output(said, rc=255)).lost == (lost,)


def test_an_unknown_failure_is_no_reading() -> None:
    with pytest.raises(CommandFailed, match="exit code 4: Insufficient"):
        parse(Output("", "Insufficient permissions\n", 4))


def test_a_list_cut_in_a_line_is_refused() -> None:
    whole = {0, LIST.index("\n") + 1}
    for end in range(len(LIST)):
        if end not in whole:
            with pytest.raises(ParseError):
                parse(Output(LIST[:end]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "command not found\n",
        LIST.replace("GPU 1:", "GPU 0:"),
        LIST.replace("GPU 1:", "GPU 2:"),
        LIST.replace("UUID: GPU-", "UUID: GP"),
        LIST + LIST,
    ],
)
def test_refuses(text: str) -> None:
    with pytest.raises(ParseError, match="nvidia-smi"):
        parse(Output(text))


@settings(max_examples=50)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unjudgeable):
        parse(Output(text))
