"""The fleet's templates against the recordings: facts, rendered, are the recording again."""

from __future__ import annotations

import ipaddress
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commcheck.check import Reader
from commcheck.command import Output
from commcheck.demo import folder, parts
from commcheck.demo.counts import PACKET_BYTES, Count
from commcheck.demo.state import MODULES, ModuleState, NicState, active_mtu_bytes, healthy, without
from commcheck.demo.sysfs import counters
from commcheck.demo.sysfs import kernel as made_kernel
from commcheck.demo.tools import dcb as made_dcb
from commcheck.demo.tools import ethtool as made_ethtool
from commcheck.demo.tools import ethtool_stats as made_stats
from commcheck.demo.tools import ibv_devinfo as made_ibv_devinfo
from commcheck.demo.tools import lsmod as made_lsmod
from commcheck.demo.tools import mlnx_qos as made_mlnx_qos
from commcheck.demo.tools import nvidia_smi as made_nvidia_smi
from commcheck.errors import Unjudgeable
from commcheck.formats import (
    dcb,
    ethtool_link,
    ethtool_pause,
    ethtool_stats,
    gid_table,
    ibv_devinfo,
    kernel_modules,
    mlnx_qos,
    nvidia_nvlink,
    nvidia_pcie,
    nvidia_version,
    pcie_link,
    rdma_counters,
)
from commcheck.formats.gid_table import Gid
from commcheck.formats.qos import Qos
from commcheck.model import Rail

RECORDED = Path(__file__).parents[1] / "recorded"
HOST = healthy(1)
NIC, GPU = HOST.nics[0], HOST.gpus[0]


def read(name: str) -> str:
    return (RECORDED / name).read_bytes().decode()


# --- from a recording to facts: what our reader keeps, and by hand what it leaves out -----------


def again_mlnx_qos(text: str) -> str:
    version = (5, 2) if "default priority:" in text else (5, 8)
    return made_mlnx_qos.render(mlnx_qos.parse(Output(text)), version)


def again_ethtool(text: str) -> str:
    link = ethtool_link.parse(Output(text))
    nic = replace(
        NIC,
        netdev=link.device,
        link_up=link.detected,
        down_reason=", ".join(filter(None, (link.reason, link.detail))),
        modes=link.supported,
        fec_modes=re.findall(r"Supported FEC modes: (.*)", text)[0],
        lanes=link.lanes,
        autoneg=link.autoneg is True,
    )
    speed = nic.speed_mbits if link.speed_mbits is None else link.speed_mbits
    version = (
        (6, 1) if text.index("Auto-neg", text.index("Speed:")) < text.index("Port:") else (4, 0)
    )
    root = "Wake-on" in text
    complaint = "" if root else made_ethtool.NOT_ROOT[True]
    return complaint + made_ethtool.settings(replace(nic, speed_mbits=speed), version, root=root)


def again_pause(text: str) -> str:
    pause = ethtool_pause.parse(Output(text))
    marks = re.findall(r"X negotiated: (\w+)", text)
    assert pause is not None
    return made_ethtool.pause(
        replace(
            NIC,
            netdev=pause.device,
            pause_autoneg=pause.autoneg,
            pause_rx=pause.rx,
            pause_tx=pause.tx,
            pause_negotiated=(marks[0] == "on", marks[1] == "on") if marks else None,
        ),
        statistics="Statistics:" in text,
    )


def again_ibv_devinfo(text: str) -> str:
    guids = re.findall(r"node_guid:\s+(\S+)", text)
    images = re.findall(r"sys_image_guid:\s+(\S+)", text)
    cards = re.findall(r"vendor_id:\s+(\S+)", text), re.findall(r"hw_ver:\s+(\S+)", text)
    speed = re.search(r"active_speed:\s+(\d+)", text)
    return "".join(
        made_ibv_devinfo.render(
            replace(
                NIC,
                hca=each.hca,
                firmware=each.firmware,
                part_id=each.part_id,
                board_id=each.board_id,
                vendor_id=int(cards[0][at], 16),
                hw_ver=int(cards[1][at], 16),
                guid=guids[at],
                image_guid=images[at],
                link_up=each.ports[0].state != "DOWN",
                mtu_bytes=each.ports[0].active_mtu_bytes + 100,
                link_layer=each.ports[0].link_layer,
                speed_mbits=4000 * int(speed[1]) if speed else NIC.speed_mbits,
                sm_lid=each.ports[0].sm_lid,
                lid=each.ports[0].lid,
                gids=tuple(gids_of(text)),
            ),
            verbose="max_qp:" in text,
        )
        for at, each in enumerate(ibv_devinfo.parse(Output(text)))
    )


def gids_of(text: str) -> Iterator[Gid]:
    for index, address, version in re.findall(r"GID\[ +(\d+)\]:\s+([^,\s]+)(?:, RoCE v(.))?", text):
        whole = ipaddress.IPv6Address(address).exploded
        yield Gid(int(index), whole, int(version or 1), NIC.netdev)


def again_lsmod(text: str) -> str:
    names = kernel_modules.parse(Output(text))
    lines = [line.split() for line in text.splitlines()]
    assert names == {words[0] for words in lines}
    return made_lsmod.render(
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
    return made_nvidia_smi.nvlink(
        tuple(
            replace(
                GPU,
                name=each.name,
                links_gbytes=each.links_gbytes,
                all_inactive=each.all_inactive,
                uuid=uuids[at],
            )
            for at, each in enumerate(nvidia_nvlink.parse(Output(text)))
        ),
        "470.57.02" if "\n  " in text else HOST.driver,
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
            ecc_errors=None if text.rstrip().endswith("[N/A]") else 0,
        )
        for each in nvidia_pcie.parse(Output(text))
    )
    return made_nvidia_smi.query(gpus, text.splitlines()[0].split(", "))


def again_version(text: str) -> str:
    version = nvidia_version.parse(Output(text))
    return made_kernel.nvidia_version(
        replace(HOST, driver=version.version, driver_open=version.is_open)
    )


def again_stats(text: str) -> str:
    read_of = ethtool_stats.parse(Output(text)).values
    of_queues = {name: int(value) for name, value in re.findall(r"  (\S+\d_\w+): (\d+)\n", text)}
    nic = replace(
        NIC,
        driver="bnxt_en" if "_cos0:" in text else NIC.driver,
        qos=replace(NIC.qos, pfc=frozenset(map(int, re.findall(r"rx_prio(\d)_pause:", text)))),
        pause_rx="rx_global_pause:" in text,
    )
    return made_stats.render(made_stats.layout(nic), {**of_queues, **read_of})


def again_dcb(text: str) -> str:
    output = Output(text)
    qos = Qos(
        pfc=dcb.parse_pfc(output) if "prio_pfc" in text else frozenset(),
        dcbx=dcb.parse_dcbx(output) if "ieee" in text else None,
        dscp_prio=dcb.parse_app(output)[0] if "dscp_prio" in text or text == "{}\n" else None,
    )
    qos = replace(qos, trust="dscp" if qos.dscp_prio else "pcp")
    render = made_dcb.pfc if "prio_pfc" in text else made_dcb.dcbx if qos.dcbx else made_dcb.app
    return render(qos)


Again = Callable[[str], str]

TEMPLATES: dict[str, Again] = {
    "dcb/app-*.json": again_dcb,
    "dcb/dcbx-*.json": again_dcb,
    "dcb/pfc-*.json": again_dcb,
    "mlnx_qos/*.txt": again_mlnx_qos,
    "ethtool/link-*.txt": again_ethtool,
    "ethtool/pause-*.txt": again_pause,
    "ethtool/stats-*.txt": again_stats,
    "ibv_devinfo/*.txt": again_ibv_devinfo,
    "modules/*.txt": again_lsmod,
    "nvidia-smi/nvlink-*.txt": again_nvlink,
    "nvidia-smi/query-*.csv": again_query,
    "nvidia-version/*.txt": again_version,
}

OTHER_FORMS = {
    "dcb/pfc-stats.json": "dcb -s, which no check runs",
    "ethtool/stats-efa-ena.txt": "counters of a driver that no host of the fleet has",
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
    assert made_nvidia_smi.lost(replace(GPU, pci=address.lower())) == text


def grep(folder_of_host: Path, reader: Reader[Any], subject: Rail) -> str:
    """What the reader's own command prints on the simulated host, as on a real one."""
    root = folder_of_host / "root"
    argv = [
        f"{root}{word}" if word.startswith("/sys/") else word
        for word in reader.commands[0].on(subject).argv
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.replace(str(root), "")


def rail(nic: NicState) -> Rail:
    return Rail(0, nic.hca, netdev=nic.netdev)


def used(text: str) -> list[str]:
    """Lines of files in use: of others the kernel shows zeros or refuses to read them."""
    lines = text.splitlines()
    return sorted(line for line in lines if line[0] == "/" and not line.endswith(gid_table.ZERO))


@pytest.mark.parametrize("name", ["gid-table-grep", "gid-table-v1-only"])
def test_sysfs_holds_the_gids_of_a_recording(tmp_path: Path, name: str) -> None:
    text = read(f"sysfs/{name}.txt")
    table = gid_table.parse(Output(text))
    nic = replace(NIC, hca=table.hca, netdev=table.gids[0].netdev, gids=table.gids)
    folder.write(replace(HOST, nics=(nic,)), tmp_path)
    assert sorted(grep(tmp_path, gid_table.GID_TABLE, rail(nic)).splitlines()) == used(text)


@pytest.mark.parametrize("name", ["pcie-link-good", "pcie-link-width-8", "pcie-link-old-kernel"])
def test_sysfs_holds_the_pcie_link_of_a_recording(tmp_path: Path, name: str) -> None:
    text = read(f"sysfs/{name}.txt")
    link = pcie_link.parse(Output(text))
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
    kernel = HOST.kernel if "PCIe" in text else "5.4.0-182-generic"
    folder.write(replace(HOST, nics=(nic,), kernel=kernel), tmp_path)
    shown = grep(tmp_path, pcie_link.PCIE_LINK, rail(nic))
    if "/../" not in text:  # recorded of a card that sits on the root complex itself
        shown = "".join(line for line in shown.splitlines(True) if "/../" not in line)
    assert shown == text


COUNTS = {
    "np_cnp_sent": "cnp_sent",
    "np_ecn_marked_roce_packets": "ecn_marked",
    "rp_cnp_handled": "cnp_handled",
    "local_ack_timeout_err": "timeouts",
    "out_of_buffer": "out_of_buffer",
    "out_of_sequence": "out_of_sequence",
    "packet_seq_err": "sequence_errors",
    "implied_nak_seq_err": "implied_naks",
    "duplicate_request": "duplicate_requests",
    "roce_adp_retrans": "retransmissions",
    "roce_adp_retrans_to": "retransmission_timeouts",
    "rx_icrc_encapsulated": "damaged_payloads",
    "rx_roce_discards": "discards",
    "to_retransmits": "timeouts",
    "seq_err_naks_rcvd": "sequence_errors",
    "oos_drop_count": "out_of_sequence",
    "rx_ecn_marked_pkts": "ecn_marked",
    "tx_cnp_pkts": "cnp_sent",
    "rx_cnp_pkts": "cnp_handled",
}


@pytest.mark.parametrize("name", ["good", "congested", "icrc", "loss", "bnxt-loss"])
def test_sysfs_holds_the_counters_of_a_recording(tmp_path: Path, name: str) -> None:
    text = read(f"sysfs/hw-counters-{name}.txt")
    values = rdma_counters.parse(Output(text)).values
    received = values.get("rx_write_requests", 0) * 131_072 or values["rx_pkts"] * PACKET_BYTES
    counts = replace(
        NIC.counts,
        rdma_rx_bytes=Count(received),
        rdma_tx_bytes=Count(values.get("tx_pkts", 0) * PACKET_BYTES),
        **{COUNTS[key]: Count(value) for key, value in values.items() if key in COUNTS},
    )
    is_bnxt = name.startswith("bnxt")
    nic = replace(
        NIC,
        hca="bnxt_re0" if is_bnxt else NIC.hca,
        driver="bnxt_en" if is_bnxt else NIC.driver,
        counts=counts,
    )
    folder.write(replace(HOST, nics=(nic,)), tmp_path)
    shown = grep(tmp_path, rdma_counters.HW_COUNTERS, rail(nic))
    assert sorted(shown.splitlines()) == sorted(text.splitlines())


def test_an_infiniband_port_has_the_counters_of_a_recording(tmp_path: Path) -> None:
    nic = replace(NIC, link_layer="InfiniBand")
    folder.write(replace(HOST, nics=(nic,)), tmp_path)
    shown = grep(tmp_path, rdma_counters.IB_COUNTERS, rail(nic))
    names = [sorted(line.partition(":")[0] for line in text.splitlines()) for text in
             (shown, read("sysfs/ib-counters-good.txt"))]  # fmt: skip
    assert names[0] == names[1]
    now, later = (counters.infiniband_values(nic, second) for second in (0, 1))
    assert {name for name in now if now[name] != later[name]} == {
        *(f"port_{way}_{what}" for way in ("rcv", "xmit") for what in ("data", "packets")),
        "unicast_rcv_packets",
        "unicast_xmit_packets",
        "port_xmit_wait",
    }


@pytest.mark.parametrize(
    ("netdev", "active"), [(1500, 1024), (4200, 4096), (4148, 4096), (4147, 2048), (9000, 4096)]
)
def test_the_rdma_mtu_follows_from_the_netdevs(netdev: int, active: int) -> None:
    assert active_mtu_bytes(netdev) == active


def test_unloading_a_module_is_seen_at_those_it_used() -> None:
    assert made_lsmod.render(without(MODULES, "nvidia_peermem")) == read(
        "modules/lsmod-no-peermem.txt"
    )


def test_hosts_differ_in_what_must_be_unique() -> None:
    hosts = [healthy(number) for number in range(1, 251)]
    guids = {nic.guid for host in hosts for nic in host.nics}
    gids = {gid.gid for host in hosts for nic in host.nics for gid in nic.gids}
    uuids = {gpu.uuid for host in hosts for gpu in host.gpus}
    assert (len(guids), len(gids), len(uuids)) == (1000, 2000, 2000)


def test_no_two_parts_answer_for_the_same() -> None:
    words = [answer.argv for answer in parts.answers(HOST, ["index", "name"])]
    paths = [each.path for each in parts.entries(HOST)]
    assert sorted(set(words)) == sorted(words)
    assert {argv[0] for argv in words} <= set(parts.tool_names())
    # All NICs have one driver, and its version is told once for each.
    assert {path for path in paths if paths.count(path) > 1} <= {
        "sys/bus/pci/drivers/mlx5_core/module/version"
    }
