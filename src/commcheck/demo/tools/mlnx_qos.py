"""``mlnx_qos``: PFC, trust, buffers and traffic classes of a port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState
from commcheck.formats.qos import Qos, TrafficClass

TOOLS: Final = ("mlnx_qos",)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of every port."""
    for nic in host.ports:
        if nic.present and nic.link_layer == "Ethernet" and nic.driver == "mlx5_core":
            argv = ("mlnx_qos", "-i", nic.netdev)
            if nic.is_vf:
                yield Answer(argv, NOT_SUPPORTED, rc=1)
            else:
                yield Answer(argv, render(nic.qos, host.mlnx_tools))


NOT_SUPPORTED: Final = (
    "Priority trust state is not supported on your system\n"
    "Buffers commands are not supported on your system\n"
    "Rate limit is not supported on your system!\n"
    "PFC is not supported on your system\n"
)
"""What it says of a netdev without DCB."""


_DCBX: Final = {"os": "OS controlled", "firmware": "Firmware controlled"}

_LLDPAD: Final = "****** WARNING: lldpad service is running and may overwrite your settings ******"

DEFAULT_PRIORITY: Final = (5, 2)
"""Version of mlnx-tools that lists the default priority; it is gone again in the next."""


def render(qos: Qos, version: tuple[int, int] = (5, 8)) -> str:
    """``mlnx_qos -i DEV``. ``version``: of mlnx-tools; what it does not tell is None in ``qos``."""
    lines = [_LLDPAD, ""] if qos.lldpad_running else []
    if qos.dcbx is not None:
        lines.append(f"DCBX mode: {_DCBX[qos.dcbx]}")
    if qos.trust is not None:
        lines.append(f"Priority trust state: {qos.trust}")
    if qos.trust == "dscp" and qos.dscp_prio is not None:
        lines += ["dscp2prio mapping:", *_dscp_rows(qos.dscp_prio)]
    if version == DEFAULT_PRIORITY:
        lines.append("default priority:")
        lines += [] if qos.default_prio is None else [f"\tprio:{qos.default_prio}"]
    if qos.buffers_bytes is not None:
        lines.append(f"Receive buffer size (bytes): {_sizes(qos, version)}")
    if qos.cable_m is not None:
        lines.append(f"Cable len: {qos.cable_m}")
    classes = qos.traffic_classes or ()
    if version == DEFAULT_PRIORITY:
        classes = tuple(sorted(classes, key=lambda each: each.priorities))
    return "".join(
        f"{line}\n"
        for line in (*lines, *_pfc(qos), *(line for each in classes for line in _class_lines(each)))
    )


def _sizes(qos: Qos, version: tuple[int, int]) -> str:
    total = "total_size" if version == DEFAULT_PRIORITY else "max_buffer_size"
    end = "" if qos.buffers_total_bytes is None else f"{total}={qos.buffers_total_bytes}"
    return "".join(f"{size}," for size in qos.buffers_bytes or ()) + end


def _pfc(qos: Qos) -> Iterator[str]:
    yield "PFC configuration:"
    yield "\tpriority    " + "   ".join("01234567")
    yield "\tenabled     " + "".join(f"{int(prio in qos.pfc)}   " for prio in range(8))
    if qos.prio_buffer is not None:
        yield "\tbuffer      " + "".join(f"{buffer}   " for buffer in qos.prio_buffer)
    if qos.trust is None:
        yield ""  # the first public version knew nothing but PFC and classes


def _dscp_rows(dscp_prio: tuple[tuple[int, int], ...]) -> Iterator[str]:
    """Eight codes a row; a priority with more has a second one."""
    for prio in range(8):
        codes = [dscp for dscp, of in dscp_prio if of == prio]
        for at in range(0, len(codes), 8):
            yield f"\tprio:{prio} dscp:" + "".join(f"{code:02d}," for code in codes[at : at + 8])


def _class_lines(each: TrafficClass) -> Iterator[str]:
    rate = each.ratelimit_gbits
    limit = rate if rate == "unlimited" else f"{rate} Gbps"
    tsa = each.tsa if each.tsa != "ets" else f"ets, bw: {each.bandwidth_percent}%"
    yield f"tc: {each.tc} ratelimit: {limit}, tsa: {tsa}"
    for prio in each.priorities:
        yield f"\t priority:  {prio}"
