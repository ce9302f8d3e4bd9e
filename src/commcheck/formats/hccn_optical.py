"""``hccn_tool -optical -g``: the module of each NPU's port, its light and its alarms.

Powers are mW for each lane, thresholds stand in the same answer, flags are bit masks of lanes.
Of passive copper the tool prints ``temperature : not supported``, ``NA`` for powers and thresholds
and no flags; only some builds print those of a lost lock (``tool_show_optical_info`` of hccn_tool).
"""

from __future__ import annotations

import re
from typing import Final, Literal

from commcheck.errors import ParseError
from commcheck.formats.hccn import per_npu
from commcheck.formats.lines import need, once, only
from commcheck.lazy import dataclass

State = Literal["present", "absent", "unreachable"]

FLAGS: Final = ("Tx Los Flag", "Rx Los Flag", "Tx LoL Flag", "Rx LoL Flag")


@dataclass(frozen=True, slots=True)
class NpuOptical:
    """A module. Where it is not ``present`` the tool may still print old values: none are kept.

    ``unreachable``: it does not answer on its management bus. Powers in mW by lane; ``flags``: by
    name the lanes that they are up for.
    """

    state: State
    part_number: str | None = None
    temperature_c: float | None = None
    temperature_high_c: float | None = None
    tx_mw: tuple[tuple[int, float], ...] = ()
    rx_mw: tuple[tuple[int, float], ...] = ()
    tx_limits_mw: tuple[float, float] | None = None  # low, high
    rx_limits_mw: tuple[float, float] | None = None
    flags: tuple[tuple[str, int], ...] = ()


def optical(text: str, tool: str) -> NpuOptical:
    """The module; raises ``ParseError`` where a present one lacks its powers or thresholds."""
    if text.strip() == "Optical module is not present.":
        return NpuOptical("absent")
    if text.strip() == "Control link unreachable.":
        return NpuOptical("unreachable")
    head, *lines = text.rstrip("\n").split("\n")
    only(r"optical info:", head, text, tool)
    values: dict[str, str] = {}
    for line in lines:
        found = only(r"(\w[\w ]*?)\s*: ?(.*)", line, text, tool)
        once(values, found[1], found[2].strip(), text, tool)
    need(values, {"present"}, text, tool)
    present = only(r"present|not present", values["present"], text, tool)[0]
    if present == "not present":
        return NpuOptical("absent")
    need(values, {"temperature", "Temp High Thres", "vendor part number"}, text, tool)
    tx_mw, rx_mw = (_lanes(values, what, text, tool) for what in ("Tx Power", "Rx Power"))
    if [lane for lane, _ in tx_mw] != [lane for lane, _ in rx_mw]:
        raise ParseError(tool, text, "both powers of every lane, or none of any")
    if rx_mw:  # an answer that was cut lacks them
        need(values, {"Tx Los Flag", "Rx Los Flag"}, text, tool)
    return NpuOptical(
        state="present",
        part_number=values["vendor part number"],
        temperature_c=_number(values["temperature"], "C", text, tool),
        temperature_high_c=_number(values["Temp High Thres"], "C", text, tool),
        tx_mw=tx_mw,
        rx_mw=rx_mw,
        tx_limits_mw=_limits(values, "TxPower", text, tool),
        rx_limits_mw=_limits(values, "RxPower", text, tool),
        flags=tuple((name, lane) for name in FLAGS for lane in _mask(values, name, text, tool)),
    )


def _lanes(
    values: dict[str, str], what: str, text: str, tool: str
) -> tuple[tuple[int, float], ...]:
    """Powers by lane; one that is told without a number is that of lane 0."""
    lanes = {
        int(lane[1] or 0): _number(value, "mW", text, tool)
        for key, value in values.items()
        if (lane := re.fullmatch(rf"{what}(\d?)", key)) is not None
    }
    told = [(lane, mw) for lane, mw in lanes.items() if mw is not None]
    if not lanes or [lane for lane, _ in told] != list(range(len(told))):
        raise ParseError(tool, text, f"{what} of every lane")
    return tuple(told)


def _limits(values: dict[str, str], what: str, text: str, tool: str) -> tuple[float, float] | None:
    keys = f"{what} Low Thres", f"{what} High Thres"
    need(values, set(keys), text, tool)
    low, high = (_number(values[key], "mW", text, tool) for key in keys)
    return None if low is None or high is None else (low, high)


def _mask(values: dict[str, str], name: str, text: str, tool: str) -> list[int]:
    if name not in values:
        return []
    bits = int(only(r"0x([0-9a-fA-F]{1,4})", values[name], text, tool)[1], 16)
    return [lane for lane in range(16) if bits >> lane & 1]


def _number(value: str, unit: str, text: str, tool: str) -> float | None:
    if value in ("NA", "N/A", "not supported"):
        return None
    return float(only(rf"(-?\d+(?:\.\d+)?) {unit}", value, text, tool)[1])


OPTICAL: Final = per_npu("-optical -g", optical)
