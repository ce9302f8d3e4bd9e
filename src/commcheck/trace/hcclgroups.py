"""What HCCL's groups are called, by torch_npu's profiler_metadata.json beside a trace.

An operator's name carries the last three digits of its group's hash, ``hcom_send__868_0_1``, and
the whole hash where it ends in ``@HASH``. Source: torch_npu and msprof-analyze (double_hash,
parallel_group_info); MindSpeed and Megatron name their groups there: tp, pp, cp, dp_cp.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from commcheck.files import read_whole
from commcheck.trace.source import Held, Source

NAME: Final = "profiler_metadata.json"
_BYTES_MOST: Final = 4 << 20
_MASK: Final = 0xFFFFFFFF


def beside(path: Source) -> Mapping[str, str]:
    """Names of groups by what operators say of them; empty where no such file tells any."""
    if isinstance(path, Held):
        return {}
    for folder in Path(os.path.realpath(path)).parents[:2]:
        try:
            told = json.loads(read_whole(folder / NAME, _BYTES_MOST))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(told, dict) and isinstance(groups := told.get("parallel_group_info"), dict):
            return _names(groups)
    return {}


def _names(groups: Mapping[str, object]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for key, about in groups.items():
        name = about.get("group_name") if isinstance(about, dict) else None
        whole = hash_of(key)
        for said in {str(whole), f"{whole % 1000}", f"{whole % 1000:03}"}:
            found.setdefault(said, set()).add(str(name or ""))
    # Three digits may be those of two groups: then they tell nothing.
    return {said: names.pop() for said, names in found.items() if len(names) == 1}


def hash_of(key: str) -> int:
    """The number that the profiler makes of a group's key."""
    high = low = 0
    for letter in key:
        high = (high * 29 + ord(letter)) & _MASK
        low = (low * 131 + ord(letter)) & _MASK
    return high << 32 | low
