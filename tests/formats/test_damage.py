"""A damaged answer is read as what it was, as less, or is refused: never as something else.

One property over every reader and its recordings. Damage is what happens to answers on their way:
a cut, a lost or doubled line, a byte that is none, noise between the lines. "Less" means that
every fact that is left was in the whole answer: a list may be shorter, a value unknown.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commcheck import formats
from commcheck.check import Reader
from commcheck.command import Output, whole_number
from commcheck.errors import ParseError, Unjudgeable

RECORDED = Path(__file__).parents[1] / "recorded"

FOLDERS = {
    "clock": "host-health",
    "cma_roce": "cma_roce",
    "cpu_governor": "host-health",
    "ethtool_driver": "ethtool",
    "ethtool_fec": "ethtool",
    "ethtool_link": "ethtool",
    "ethtool_module": "ethtool",
    "ethtool_pause": "ethtool",
    "ethtool_ring": "ethtool",
    "fabric_manager": "host-health",
    "fi_info": "efa",
    "gid_table": "sysfs",
    "hccn_conf": "hccn_conf",
    "hccn_history": "hccn_sections",
    "hccn_optical": "hccn_sections",
    "hccn_port": "hccn_sections",
    "ibdev2netdev": "ibdev2netdev",
    "ibstat": "ibstat",
    "ibstatus": "ibstatus",
    "ibv_devinfo": "ibv_devinfo",
    "ipv4_conf": "procfs",
    "kernel_xid": "host-health",
    "lldpctl": "lldpctl",
    "lldptool": "lldptool",
    "lspci": "lspci",
    "mlxconfig": "mlxconfig",
    "mlxlink": "mlxlink",
    "niccli": "niccli",
    "npu_codes": "npu-codes",
    "npu_smi": "npu-smi",
    "numa_nodes": "host-health",
    "nvidia_affinity": "gpu-health",
    "nvidia_fabric": "gpu-health",
    "nvidia_fabric_health": "gpu-health",
    "nvidia_gpu": "gpu-health",
    "nvidia_recovery": "gpu-health",
    "nvidia_remap": "gpu-health",
    "nvidia_slowed": "gpu-health",
    "nvidia_topo": "nvidia-smi",
    "nvlink_errors": "gpu-health",
    "pcie_link": "sysfs",
    "port_state": "sysfs",
    "proc_limits": "procfs",
    "rdma_link": "rdma",
    "shm": "host-health",
    "show_gids": "show_gids",
    "systemctl": "host-health",
}
"""Readers of one answer, by module, and the folder of their recordings."""


def readers(module: str) -> list[Reader[Any]]:
    loaded = importlib.import_module(f"commcheck.formats.{module}")
    found = {id(each.parse): each for each in vars(loaded).values() if isinstance(each, Reader)}
    return [each for each in found.values() if len(each.commands) == 1]


def whole_answers(reader: Reader[Any], folder: str) -> Iterator[tuple[str, Any]]:
    for path in sorted((RECORDED / folder).iterdir()):
        if path.suffix in (".txt", ".json") and path.stat().st_size < 8000:
            text = path.read_bytes().decode()
            try:
                facts = reader.parse(Output(text))
            except Unjudgeable:
                continue
            if any("not readable" in why for _, why in getattr(facts, "failed", ())):
                continue  # the answer to another query
            if text.strip() and is_told(facts):
                yield text, facts


def is_told(facts: Any) -> bool:
    """False for a reading that is the same for no answer at all."""
    return facts not in (None, (), frozenset())


def is_part_of(left: Any, whole: Any) -> bool:
    """Every fact that is left is one of the whole."""
    if left == whole or left is None:
        return True
    if dataclasses.is_dataclass(left) and type(left) is type(whole):
        return all(
            is_part_of(getattr(left, each.name), getattr(whole, each.name))
            for each in dataclasses.fields(left)
            if each.compare
        )
    if isinstance(left, tuple) and isinstance(whole, tuple):
        return all(any(is_part_of(one, other) for other in whole) for one in left)
    if isinstance(left, frozenset) and isinstance(whole, frozenset):
        return left <= whole
    # A text for people with a visible hole in it is no wrong fact.
    return isinstance(left, str) and "\ufffd" in left


def damaged(text: str, chance: random.Random) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    for _ in range(8):
        yield text[: chance.randrange(len(text))]
        at = chance.randrange(len(text))
        yield text[:at] + "\ufffd" + text[at + 1 :]
        line = chance.randrange(len(lines))
        yield "".join(lines[:line])
        yield "".join(lines[:line] + lines[line + 1 :])
        yield "".join(lines[: line + 1] + lines[line:])
        yield "".join([*lines[:line], "Netlink error: No buffer space\n", *lines[line:]])
        yield "".join([*lines[:line], "\ufffd\ufffd\n", *lines[line + 1 :]])


@pytest.mark.parametrize("module", FOLDERS)
def test_a_damaged_answer_never_tells_something_else(module: str) -> None:
    chance = random.Random(module)  # the same damage in every run
    seen = 0
    for reader in readers(module):
        for text, facts in whole_answers(reader, FOLDERS[module]):
            seen += 1
            for broken in damaged(text, chance):
                try:
                    left = reader.parse(Output(broken))
                except Unjudgeable as error:
                    assert error.reason
                else:
                    assert is_part_of(left, facts), (reader.tool, broken)
            assert reader.parse(Output(f"\x1b[1m{text}\x1b[0m".replace("\n", "\r\n"))) == facts
    assert seen


@pytest.mark.parametrize("module", FOLDERS)
def test_foreign_text_is_refused(module: str) -> None:
    for reader in readers(module):
        for text in (
            "bash: \u672a\u627e\u5230\u547d\u4ee4\n",
            "<html>\n",
            "{}\n",
            "[[[[\n",
            "\x00\n",
        ):
            try:
                facts = reader.parse(Output(text))
            except Unjudgeable as error:
                assert isinstance(error, ParseError) or error.reason
            else:
                assert not is_told(facts), (reader.tool, text)


def test_every_reader_of_the_package_is_named_or_tested_elsewhere() -> None:
    elsewhere = {
        "dcb",
        "ethtool_stats",
        "hccn_counters",
        "iommu",
        "ip_addresses",
        "kernel_modules",
        "mlnx_qos",
        "netdev_mtu",
        "nccl_conf",
        "nvidia_nvlink",
        "nvidia_pcie",
        "nvidia_smi_list",
        "nvidia_version",
        "rdma_counters",
        "roce_marking",
    }
    modules = {each.name for each in pkgutil.iter_modules(formats.__path__)}
    with_readers = {name for name in modules if readers(name)}
    assert FOLDERS.keys() <= with_readers
    assert not elsewhere & FOLDERS.keys()


@pytest.mark.parametrize("text", ["²", "٣", "", "-1", "1.0", " 1", "9" * 19, "9" * 5000, None, 1.5])
def test_what_is_no_whole_number(text: object) -> None:
    assert whole_number(text) is None


def test_a_whole_number() -> None:
    assert [whole_number(each) for each in ("0", "007", 12, "9" * 18)] == [0, 7, 12, 10**18 - 1]
    assert whole_number("1234", 3) is None
