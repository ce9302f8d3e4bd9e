"""``ibv_devinfo``: RoCE, InfiniBand, EFA-like names, verbose layouts and failures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.ibv_devinfo import IbvDevice, IbvPort, parse

RECORDED = Path(__file__).parents[1] / "recorded" / "ibv_devinfo"

ROCE = IbvPort(1, "ACTIVE", 4096, 4096, "Ethernet", 0, 0)
IB = IbvPort(1, "ACTIVE", 4096, 4096, "InfiniBand", 1, 17)
CX7 = IbvDevice("mlx5_0", "28.39.2048", 0x02C9, 4129, "MT_0000000838", (ROCE,))
IB_CX7 = replace(CX7, ports=(IB,))


def named(device: IbvDevice, *names: str) -> tuple[IbvDevice, ...]:
    return tuple(replace(device, hca=name) for name in names)


FACTS = {
    "bnxt-good.txt": (IbvDevice("bnxt_re0", "231.0.153.0", 0x14E4, 5984, None, (ROCE,)),),
    "ib-hdr-down-to-edr.txt": (
        IbvDevice("mlx5_0", "20.39.2048", 0x02C9, 4123, "MT_0000000223", (replace(IB, lid=9),)),
    ),
    "ib-ndr-good.txt": (IB_CX7,),
    "ib-port-init-no-sm.txt": (
        replace(CX7, ports=(replace(IB, state="INIT", sm_lid=0, lid=65535),)),
    ),
    "ib-verbose-ndr.txt": (IB_CX7,),
    "roce-400g-good.txt": (CX7,),
    "roce-8hca-good.txt": named(CX7, *(f"mlx5_{number}" for number in range(8))),
    "roce-bond.txt": (
        replace(
            CX7,
            hca="mlx5_bond_0",
            firmware="22.41.1000",
            part_id=4125,
            board_id="MT_0000000359",
        ),
    ),
    "roce-mtu-1024.txt": (replace(CX7, ports=(replace(ROCE, active_mtu_bytes=1024),)),),
    "roce-port-down.txt": (
        CX7,
        replace(CX7, hca="mlx5_1", ports=(replace(ROCE, state="DOWN", active_mtu_bytes=1024),)),
    ),
    "roce-udev-names.txt": named(CX7, "rocep129s0f0np0", "rocep130s0"),
    "roce-verbose-100g-on-400g.txt": (CX7,),
    "roce-verbose-400g.txt": (CX7,),
    "roce-verbose-v1-only.txt": (CX7,),
}
FAILURES = {
    "device-not-found.txt": (255, "IB device 'mlx5_9' wasn't found"),
    "no-devices.txt": (255, "No IB devices found"),
    "no-uverbs-module.txt": (255, "ib_uverbs is not loaded"),
    "open-failed.txt": (1, "cannot be opened"),
    "provider-missing.txt": (255, "no user-space driver"),
}


def text_of(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.mark.parametrize("name", FACTS)
def test_facts(name: str) -> None:
    assert parse(Output(text_of(name))) == FACTS[name]


def test_storage_beside_training() -> None:
    found = parse(Output(text_of("mixed-storage-eth.txt")))
    assert [(each.hca, each.ports[0].link_layer) for each in found] == [
        ("mlx5_0", "InfiniBand"),
        ("mlx5_1", "InfiniBand"),
        ("mlx5_2", "Ethernet"),
    ]
    assert found[2].ports[0].active_mtu_bytes == 1024


def test_every_recording_is_named() -> None:
    others = {"mixed-storage-eth.txt", "devices-list.txt", "command-not-found.txt"}
    names = {path.name for path in RECORDED.glob("*.txt")}
    assert names == FACTS.keys() | FAILURES.keys() | others


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("on_stderr", [True, False])
def test_failures(name: str, on_stderr: bool) -> None:
    rc, says = FAILURES[name]
    text = text_of(name)
    with pytest.raises(CommandFailed, match=says):
        parse(Output("", text, rc) if on_stderr else Output(text, "", rc))


def test_the_list_of_another_tool_is_refused() -> None:
    with pytest.raises(ParseError, match="ibv_devinfo"):
        parse(Output(text_of("devices-list.txt")))


@pytest.mark.parametrize("name", sorted(FACTS))
def test_a_cut_answer_is_refused_or_tells_the_same(name: str) -> None:
    text, devices = text_of(name), FACTS[name]
    for end in range(len(text)):
        try:
            found = parse(Output(text[:end]))
        except ParseError:
            continue
        # A cut between two HCAs is told by the exit code.
        assert found == devices[: len(found)]
        assert text.count("hca_id", 0, end) == len(found)


@settings(max_examples=100)
@given(
    name=st.sampled_from(sorted(FACTS)),
    line=st.integers(0, 200),
    at=st.integers(0, 60),
    by=st.sampled_from(["X", "\n", " "]),
)
def test_a_damaged_line_never_changes_a_port(name: str, line: int, at: int, by: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    line %= len(lines)
    at %= len(lines[line])
    lines[line] = lines[line][:at] + by + lines[line][at + 1 :]
    try:
        found = parse(Output("".join(lines)))
    except ParseError:
        return
    assert [device.ports for device in found] == [device.ports for device in FACTS[name]]


def test_noise_changes_nothing() -> None:
    text = f"libibverbs: Warning: x\n\x1b[1m{text_of('roce-400g-good.txt')}\x1b[0m"
    assert parse(Output(text.replace("\n", "\r\n"))) == (CX7,)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("4096 (5)", "4096 (3)"),
        ("4096 (5)", "9000 (6)"),
        ("PORT_ACTIVE (4)", "PORT_UP (4)"),
        ("phys_port_cnt:\t\t\t1", "phys_port_cnt:\t\t\t2"),
        ("Ethernet", "Token Ring"),
        ("\tfw_ver:", "\tnode_desc:"),
    ],
)
def test_refuses(old: str, new: str) -> None:
    text = text_of("roce-400g-good.txt")
    assert old in text
    with pytest.raises(ParseError, match="ibv_devinfo"):
        parse(Output(text.replace(old, new)))


@settings(max_examples=50)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unjudgeable):
        parse(Output(text))
