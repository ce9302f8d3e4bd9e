"""``hccn_tool``: the RoCE port of each NPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from commcheck.demo.counts import Count
from commcheck.demo.npu import PACKETS, NpuState
from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState

TOOLS: Final = ("hccn_tool",)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Every query of every NPU; of others there is none."""
    yield Answer(("hccn_tool",), "The device is not exist!\n", rc=1)
    for npu in host.npus:
        if npu.present:
            for query, say in _QUERIES.items():
                words = ("hccn_tool", "-i", str(npu.number), *query.split())
                yield Answer(words, say(npu))
            for query, count in (("-stat -g", stat), ("-pfc_stat -g", pfc_stat)):
                words = ("hccn_tool", "-i", str(npu.number), *query.split())
                yield Answer(words, count(npu, host.second))


def _unset(what: str) -> str:
    return f"Get {what} failed, because no {what.removesuffix('conf')} was preset there!\n"


def _address(npu: NpuState) -> str:
    if npu.address is None:
        return _unset("ipconf")
    return f"ipaddr:{npu.address}\nnetmask:{npu.netmask}\n"


def _gateway(npu: NpuState) -> str:
    if npu.gateway is None:
        return _unset("gateway")
    return f"default gateway:{npu.gateway}, Iface:eth0\n"


def _speed(npu: NpuState) -> str:
    return f"Speed: {npu.speed_mbits} Mb/s\n" if npu.link_up else "Speed: Unknown!\n"


def _health(npu: NpuState) -> str:
    said = npu.net_health
    if said == "Success" and not npu.asked:
        said = "Init"
    return f"net health status: {said if npu.link_up else 'Fault'}\n"


def _pfc(npu: NpuState) -> str:
    flags = " ".join(str(int(prio in npu.pfc)) for prio in range(8))
    return f"PFC configuration:\npriority   0 1 2 3 4 5 6 7\nenabled    {flags}\n"


def _classes(npu: NpuState) -> str:
    of = dict(npu.dscp_tc)
    rows = "".join(f"{dscp:>4}{of.get(dscp, 0):>8}\n" for dscp in range(64))
    return f"dscp      tc\n{rows}"


def _vnic(npu: NpuState) -> str:
    if npu.vnic is None:
        return "The command is not supported on this product.\n"
    return f"vnic link status: UP\nvnic ipaddr: {npu.vnic}\nvnic netmask: 255.255.0.0\n"


def _tls(npu: NpuState) -> str:
    return (
        f"dev_id:{npu.number}, tls switch[{npu.tls}](0:disable, 1:enable), "
        "tls preconfigured[1](0:non-preset, 1:preset), tls alarm time threshold[60]days\n"
    )


_NOW: Final = datetime(2026, 11, 29, 10, 8, 28, tzinfo=UTC)


def _link_stat(npu: NpuState) -> str:
    mark = f"[device {npu.number}]"
    ups = sum(state == "UP" for _, state in npu.changes)
    lines = [
        f"current time        : {_NOW:%a %b %d %H:%M:%S %Y}",
        f"link up count       : {ups}",
        f"link down count     : {len(npu.changes) - ups}",
        "link change records :",
        *(
            f"    {_NOW - timedelta(seconds=ago):%a %b %d %H:%M:%S %Y}    LINK {state}"
            for ago, state in npu.changes
        ),
    ]
    return "".join(f"{mark}{line}\n" for line in lines)


def _lldp(npu: NpuState) -> str:
    if not npu.link_up or not npu.switch:
        return ""
    return (
        "Chassis ID TLV\n\tMAC: 02:00:5e:10:20:30\n"
        f"Port ID TLV\n\tIfname: 400GE1/1/{npu.number // 2 + 1}:{npu.number % 2 + 1}\n"
        f"Time to Live TLV\n\t120\nSystem Name TLV\n\t{npu.switch}\nEnd of LLDPDU TLV\n"
    )


def _optical(npu: NpuState) -> str:
    if not npu.module:
        return "Optical module is not present.\n"
    dark = sum(1 << lane for lane, mw in enumerate(npu.rx_mw) if mw < _RX_LOW_MW)
    rows: dict[str, str] = {
        "present": "present",
        "temperature": "47 C",
        "vendor part number": "LTA8531-PC+",
        "Vcc": "3262.90 mV",
    }
    for lane, rx in enumerate(npu.rx_mw):
        rows |= {f"Tx Power{lane}": "1.3968 mW", f"Rx Power{lane}": f"{rx:.4f} mW"}
    rows |= {
        "Temp High Thres": "70 C",
        "Temp Low Thres": "0 C",
        "TxPower High Thres": "3.5481 mW",
        "TxPower Low Thres": "0.2818 mW",
        "RxPower High Thres": "3.5481 mW",
        "RxPower Low Thres": f"{_RX_LOW_MW:.4f} mW",
        "Tx Los Flag": "0x0",
        "Rx Los Flag": f"0x{dark:x}",
        "Tx LoL Flag": "0x0",
        "Rx LoL Flag": f"0x{dark:x}",
    }
    rows |= {f"Media SNR Lane{lane}": "23.1000 dB" for lane in range(len(npu.rx_mw))}
    return "optical info:\n" + "".join(f"{key:<21}: {value}\n" for key, value in rows.items())


_RX_LOW_MW: Final = 0.1445

_QUERIES: Final[dict[str, Callable[[NpuState], str]]] = {
    "-link -g": lambda npu: f"link status: {'UP' if npu.link_up else 'DOWN'}\n",
    "-net_health -g": _health,
    "-speed -g": _speed,
    "-ip -g": _address,
    "-gateway -g": _gateway,
    "-netdetect -g": lambda npu: f"netdetect addr: {npu.asked or '0.0.0.0'}\n",  # noqa: S104
    "-pfc -g": _pfc,
    "-dscp_to_tc -g": _classes,
    "-optical -g": _optical,
    "-link_stat -g": _link_stat,
    "-lldp -g": _lldp,
    "-tls -g": _tls,
    "-mtu -g": lambda npu: f"mtu:{npu.mtu_bytes}\n",
    "-fec -g": lambda npu: f"fec mode: {npu.fec} FEC mode\n",
    "-vnic -g": _vnic,
}

_OTHERS: Final = (
    "mac_rx_bad_pkt_num",
    "mac_rx_fcs_err_pkt_num",
    "roce_rx_err_pkt_num",
    "roce_tx_err_pkt_num",
    "roce_rx_cnp_pkt_num",
    "roce_unexpected_ack_num",
    "roce_out_of_order_num",
    "roce_verification_err_num",
    "roce_new_pkt_rty_num",
)


def stat(npu: NpuState, second: int) -> str:
    """``hccn_tool -stat -g``, ``second`` seconds after the first look."""
    names = [f"mac_{way}_pfc_pri{prio}_pkt_num" for way in ("tx", "rx") for prio in range(8)]
    counts = dict.fromkeys((*names, *_OTHERS), Count())
    counts |= {"mac_rx_pfc_pri4_pkt_num": Count(1203)}
    counts |= dict.fromkeys(("mac_tx_total_pkt_num", "mac_rx_total_pkt_num"), PACKETS)
    counts |= {name: count for name, count in npu.counts.items() if name in counts}
    lines = (f"{name}:{count.at(second)}\n" for name, count in counts.items())
    return "packet statistics:\n" + "".join(lines)


def pfc_stat(npu: NpuState, second: int) -> str:
    """``hccn_tool -pfc_stat -g``: durations, then counts."""
    ways = [f"{way}_pfc{prio}_duration" for way in ("tx", "rx") for prio in range(8)]
    lines = [
        f"{way}_time={npu.counts.get(f'{way}_time', Count()).at(second)}.000ms" for way in ways
    ]
    for kind in ("warn_cnt", "err_cnt"):
        names = [f"{way}_{kind}" for way in ways[:8]]
        lines += [f"{name}: {npu.counts.get(name, Count()).at(second)}" for name in names]
    return "".join(f"{line}\n" for line in lines)
