"""The fleet's templates against the recordings: facts, rendered, are the recording again."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.check import Output
from commcheck.demo import folder, sysfs, tools
from commcheck.demo.state import MODULES, ModuleState, healthy, without
from commcheck.errors import Unjudgeable
from commcheck.formats import (
    ethtool_link,
    ethtool_pause,
    gid_table,
    ibv_devinfo,
    kernel_modules,
    mlnx_qos,
    nvidia_nvlink,
    nvidia_pcie,
    nvidia_version,
    pcie_link,
)

RECORDED = Path(__file__).parents[1] / "recorded"
HOST = healthy(1)
NIC, GPU = HOST.nics[0], HOST.gpus[0]


def read(name: str) -> str:
    return (RECORDED / name).read_bytes().decode()


# --- from a recording to facts: what our reader keeps, and by hand what it leaves out -----------


def again_mlnx_qos(text: str) -> str:
    return tools.mlnx_qos(mlnx_qos.parse(Output(text)))


def again_ethtool(text: str) -> str:
    link = ethtool_link.parse(Output(text))
    nic = replace(
        NIC,
        netdev=link.device,
        link_up=link.detected,
        down_reason=", ".join(filter(None, (link.reason, link.detail))),
        modes=link.supported,
        lanes=link.lanes,
        autoneg=link.autoneg is True,
    )
    speed = nic.speed_mbits if link.speed_mbits is None else link.speed_mbits
    return tools.ethtool(replace(nic, speed_mbits=speed))


def again_pause(text: str) -> str:
    pause = ethtool_pause.parse(Output(text))
    marks = re.findall(r"X negotiated: (\w+)", text)
    assert pause is not None
    return tools.ethtool_pause(
        replace(
            NIC,
            netdev=pause.device,
            pause_autoneg=pause.autoneg,
            pause_rx=pause.rx,
            pause_tx=pause.tx,
            pause_negotiated=(marks[0] == "on", marks[1] == "on") if marks else None,
        )
    )


def again_ibv_devinfo(text: str) -> str:
    guids = re.findall(r"node_guid:\s+(\S+)", text)
    images = re.findall(r"sys_image_guid:\s+(\S+)", text)
    return "".join(
        tools.ibv_devinfo(
            replace(
                NIC,
                hca=each.hca,
                firmware=each.firmware,
                part_id=each.part_id,
                board_id=str(each.board_id),
                guid=guids[at],
                image_guid=images[at],
                link_up=each.ports[0].state == "ACTIVE",
                mtu_bytes=each.ports[0].active_mtu_bytes + 100,
                link_layer=each.ports[0].link_layer,
                sm_lid=each.ports[0].sm_lid,
                lid=each.ports[0].lid,
            )
        )
        for at, each in enumerate(ibv_devinfo.parse(Output(text)))
    )


def again_lsmod(text: str) -> str:
    names = kernel_modules.parse(Output(text))
    lines = [line.split() for line in text.splitlines()]
    assert names == {words[0] for words in lines}
    return tools.lsmod(
        tuple(
            ModuleState(
                words[0],
                int(words[1]),
                int(words[2]),
                tuple(",".join(words[3:]).split(",")) if words[3:] else (),
            )
            for words in lines
        )
    )


def again_nvlink(text: str) -> str:
    uuids = re.findall(r"UUID: (\S+)\)", text)
    return tools.nvidia_smi_nvlink(
        tuple(
            replace(
                GPU,
                name=each.name,
                links_gbytes=each.links_gbytes,
                all_inactive=each.all_inactive,
                uuid=uuids[at],
            )
            for at, each in enumerate(nvidia_nvlink.parse(Output(text)))
        )
    )


def again_query(text: str) -> str:
    gpus = tuple(
        replace(
            GPU,
            name=each.name,
            pci=each.pci[4:],
            pcie_gen=each.gen,
            pcie_width=each.width,
            idle_reasons=int(bool(each.is_idle)),
        )
        for each in nvidia_pcie.parse(Output(text))
    )
    return tools.nvidia_smi_query(gpus, text.splitlines()[0].split(", "))


def again_version(text: str) -> str:
    version = nvidia_version.parse(Output(text))
    return sysfs.nvidia_version(replace(HOST, driver=version.version, driver_open=version.is_open))


Again = Callable[[str], str]

TEMPLATES: dict[str, Again] = {
    "mlnx_qos/*.txt": again_mlnx_qos,
    "ethtool/link-*.txt": again_ethtool,
    "ethtool/pause-*.txt": again_pause,
    "ibv_devinfo/*.txt": again_ibv_devinfo,
    "modules/*.txt": again_lsmod,
    "nvidia-smi/nvlink-*.txt": again_nvlink,
    "nvidia-smi/query-*.csv": again_query,
    "nvidia-version/*.txt": again_version,
}

OTHER_FORMS = {
    "mlnx_qos/layout-4.2-no-buffer.txt": "an older mlnx-tools than the fleet has",
    "mlnx_qos/layout-4.6-no-total.txt": "an older mlnx-tools than the fleet has",
    "mlnx_qos/layout-5.2-default-priority.txt": "an older mlnx-tools than the fleet has",
    "mlnx_qos/layout-5.2-default-priority-empty.txt": "an older mlnx-tools than the fleet has",
    "mlnx_qos/layout-classic-2017.txt": "an older mlnx-tools than the fleet has",
    "ethtool/link-400g-nonroot.txt": "the session of a user; lines for root are left out",
    "ethtool/link-old-ioctl-layout.txt": "an older ethtool than the fleet has",
    "ethtool/pause-with-stats.txt": "ethtool -I, which no check runs",
    "ibv_devinfo/bnxt-good.txt": "another vendor's card; the fleet has ConnectX",
    "ibv_devinfo/ib-hdr-down-to-edr.txt": "ibv_devinfo -v, which no check runs",
    "ibv_devinfo/ib-port-init-no-sm.txt": "a port that waits for its subnet manager",
    "ibv_devinfo/ib-verbose-ndr.txt": "ibv_devinfo -v, which no check runs",
    "ibv_devinfo/roce-verbose-100g-on-400g.txt": "ibv_devinfo -v, which no check runs",
    "ibv_devinfo/roce-verbose-400g.txt": "ibv_devinfo -v, which no check runs",
    "ibv_devinfo/roce-verbose-v1-only.txt": "ibv_devinfo -v, which no check runs",
    "nvidia-smi/nvlink-a100-good.txt": "an older driver's blanks before each link",
    "nvidia-smi/query-gpu-na.csv": "two words for unknown, which the reader keeps as one",
}
"""Recordings that the reader reads and the fleet does not print, with the reason."""


def readable() -> Iterator[tuple[str, Again]]:
    """Every recording of the fleet's tools that is an answer, not a complaint."""
    for pattern, again in TEMPLATES.items():
        for path in sorted(RECORDED.glob(pattern)):
            name = str(path.relative_to(RECORDED))
            try:
                again(read(name))
            except Unjudgeable:
                continue
            yield name, again


@pytest.mark.parametrize(("name", "again"), list(readable()))
def test_the_facts_of_a_recording_rendered_are_the_recording(name: str, again: Again) -> None:
    # Both ways: a recording that can be rendered must not stay among the exceptions.
    assert (again(read(name)) == read(name)) is (name not in OTHER_FORMS)


def test_the_exceptions_exist() -> None:
    assert OTHER_FORMS.keys() <= {name for name, _ in readable()}


def test_the_words_of_a_lost_gpu() -> None:
    text = read("nvidia-smi/gpu-lost.txt")
    address = re.findall(r"GPU(\S+): ", text)[0]
    assert tools.nvidia_smi_lost(replace(GPU, pci=address.lower())) == text


SYSFS_LINE = re.compile(r"/(sys/class/infiniband/[^:]+):(.+)")


def sysfs_lines(name: str) -> dict[str, str]:
    """Path to value of each line of a recording that grep printed of a file in use."""
    found = (SYSFS_LINE.fullmatch(line) for line in read(name).splitlines())
    lines = {match[1]: match[2] for match in found if match}
    return {path: value for path, value in lines.items() if value != gid_table.ZERO}


@pytest.mark.parametrize("name", ["gid-table-grep", "gid-table-v1-only"])
def test_sysfs_holds_the_gids_of_a_recording(tmp_path: Path, name: str) -> None:
    text = read(f"sysfs/{name}.txt")
    table = gid_table.parse(Output(text))
    nic = replace(NIC, hca=table.hca, netdev=table.gids[0].netdev, gids=table.gids)
    folder.write(replace(HOST, nics=(nic,)), tmp_path)
    port = tmp_path / "root/sys/class/infiniband" / table.hca / "ports/1"
    held = {
        str(file.relative_to(tmp_path / "root")): file.read_text()
        for kind in ("gids", "gid_attrs/types", "gid_attrs/ndevs")
        for file in (port / kind).iterdir()
    }
    lines = sysfs_lines(f"sysfs/{name}.txt")
    assert held == {path: f"{value}\n" for path, value in lines.items()}


@pytest.mark.parametrize("name", ["pcie-link-good", "pcie-link-width-8"])
def test_sysfs_holds_the_pcie_link_of_a_recording(tmp_path: Path, name: str) -> None:
    link = pcie_link.parse(Output(read(f"sysfs/{name}.txt")))
    assert link.speed_gts is not None
    assert link.max_speed_gts is not None
    nic = replace(
        NIC,
        pcie_gts=link.speed_gts,
        pcie_width=link.width or 0,
        pcie_max_gts=link.max_speed_gts,
        pcie_max_width=link.max_width or 0,
        speed_mbits=int(1000 * (link.rate_gbits or 0)),
    )
    folder.write(replace(HOST, nics=(nic,)), tmp_path)
    for path, value in sysfs_lines(f"sysfs/{name}.txt").items():
        assert Path(f"{tmp_path}/root/{path}").read_text() == f"{value}\n"


@pytest.mark.parametrize(
    ("netdev", "active"), [(1500, 1024), (4200, 4096), (4148, 4096), (4147, 2048), (9000, 4096)]
)
def test_the_rdma_mtu_follows_from_the_netdevs(netdev: int, active: int) -> None:
    assert tools.active_mtu_bytes(netdev) == active


def test_unloading_a_module_is_seen_at_those_it_used() -> None:
    assert tools.lsmod(without(MODULES, "nvidia_peermem")) == read("modules/lsmod-no-peermem.txt")


def test_a_tool_answers_for_its_words_and_nothing_else(tmp_path: Path) -> None:
    host = replace(HOST, missing=frozenset({"lsmod"}))
    folder.write(host, tmp_path)

    def run(tool: str, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [str(tmp_path / "bin" / tool), *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    assert run("ethtool", "ens1np0").stdout == tools.ethtool(NIC)
    assert run("ethtool", "nowhere").returncode == 64
    assert run("ethtool", "nowhere").stdout == ""
    assert (run("lsmod").returncode, run("lsmod").stderr) == (127, "sh: 1: lsmod: not found\n")


def test_hosts_differ_in_what_must_be_unique() -> None:
    hosts = [healthy(number) for number in range(1, 251)]
    guids = {nic.guid for host in hosts for nic in host.nics}
    gids = {gid.gid for host in hosts for nic in host.nics for gid in nic.gids}
    uuids = {gpu.uuid for host in hosts for gpu in host.gpus}
    assert (len(guids), len(gids), len(uuids)) == (1000, 2000, 2000)
