"""HCCL's error codes, and the words that stand for them in a plog, which holds no code.

A code is printed on the job's own output; the plog of the same process has lines of level ERROR
with the keywords of CANN 8.5 and newer, or the texts of older ones. Sources: hcomm, docs/en, "HCCL
Multi-Level Retrieval Keywords" and error_codes; hiascend.com, hcclug_000025 and atlaserrorcode_15.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.lazy import regex

CODES: Final = {
    "EI0001": "an HCCL_* variable has a bad value",
    "EI0002": "a rank waited too long inside an operator; the culprit is the one not waiting",
    "EI0003": "bad argument of a collective",
    "EI0004": "the rank table cannot be read",
    "EI0005": "ranks call with different arguments",
    "EI0006": "no link to a peer in time: it is late, dead, or its device network is broken",
    "EI0007": "a resource is not available",
    "EI0008": "CANN versions differ between ranks",
    "EI0009": "a transport could not be set up",
    "EI0010": "devices of one server cannot reach each other",
    "EI0011": "too little device memory for queue pairs",
    "EI0012": "an SDMA copy failed: HCCS link or freed buffer",
    "EI0013": "RoCE lost packets (status 12: no acknowledgement)",
    "EI0014": "the rank table disagrees with the devices",
    "EI0015": "ranks never connected over the hosts' network",
    "EI0016": "TLS differs between ranks",
    "EI0017": "the rank table disagrees with the devices",
    "EI0018": "a UB link lost packets",
    "EI0019": "a port is already in use",
    "EI0020": "a port of the NPU is already in use",
    "EI9999": "internal error",
    "EJ0001": "the link process did not start: mostly the last job still owns the device",
    "EJ0003": "an address or port is in use",
    "EJ0004": "the rank table disagrees with the addresses of the devices",
}
"""Meanings of the codes (CANN documentation, HCCL error codes of releases 7 to 9.0)."""

WAITING: Final = frozenset({"EI0002", "EI0006", "EI0009", "EI0013", "EI0015"})
"""Codes of a rank that waited: who is at fault is another one, or the way to it."""

RESULTS: Final = {
    1: "bad parameter",
    2: "null pointer",
    3: "memory error",
    4: "internal error",
    5: "not supported",
    6: "not found",
    7: "a resource is not available",
    8: "a system call failed",
    9: "timeout",
    10: "a file cannot be opened",
    11: "TCP connect failed",
    12: "RoCE connect failed",
    13: "TCP transfer failed",
    14: "RoCE transfer failed",
    15: "the runtime failed",
    16: "the driver failed",
    19: "the network failed",
    21: "error CQE",
    24: "out of memory",
}
"""HcclResult: what a call of HCCL returns (hccl_types.h)."""

_WORDS: Final = tuple(
    (regex(words), code)
    for words, code in (
        (r"is inconsistent with the IP ?(?:address)?", "EI0014"),
        (r"Please check the port status", "EI0019"),
        # 12 and the card's own 0x15: retries ran out; flushed ones only follow from another error.
        (r"(?:cqe error status|failed CQE status)\[12\]|error cqe status: 0x15\b", "EI0013"),
        (r"\[EnvConfig\]", "EI0001"),
        (r"\[RanktableConfig\]", "EI0004"),
        (r"\[VersionConflict\]", "EI0008"),
        (r"\[ParameterConflict\]|CMD information .{1,80}check fail", "EI0005"),
        (r"\[RanktableCheck\]", "EI0014"),
        (r"\[RanktableDetect\]|topo exchange \w+ get socket timeout", "EI0015"),
        (r"Failed to connect agent", "EI0015"),
        (r"wait socket establish timeout|\[InitChannelStage\]\[Timeout\]", "EI0006"),
        (r"Transport init error|LINK_ERROR_INFO", "EI0006"),
        (r"\[TaskExecStage\]\[Timeout\]|Task run failed", "EI0002"),
        (r"\[HeartbeatAbnormal\]|Cluster Exception Location", "EI0002"),
    )
)
"""The first that matches counts: a port that cannot be bound has the keywords of its stage, too."""

NPU_PORT: Final = regex(r"socket type\[[01]\]|port\[16666\]|port 16666\b")
"""The device's side: type 2 is the host's; 16666 is bound on the device unless told otherwise."""

_CERTAIN: Final = regex(r"errNo\[0x|\[\w+Stage\]\[|HCCL function error|HCCL error in|ERR02200")
_RESULT: Final = regex(r"errNo\[0x[0-9a-f]{12}([0-9a-f]{4})\]|error code is (\d{1,4})\b")
_LEAD: Final = regex(
    r".{0,200}?\bE[A-Z]\d{4}\)?:? *(?:\[PID: \d{1,9}\] ?)?(?:\d{4}-\d\d-[\d:.-]{10,20} *)?"
)
_HCCP: Final = regex(r"^tid:\d{1,9},[\w()]{1,80} ?: ?")
QUOTED_MOST: Final = 240


def implied(text: str) -> str:
    """The code that an error line of a plog stands for, or "" where its words are not known."""
    code = next((code for words, code in _WORDS if words.search(text)), "")
    if code == "EI0014" and re.search(r"\btls\b", text, re.IGNORECASE):
        return "EI0016"
    return "EI0020" if code == "EI0019" and NPU_PORT.search(text) else code


def is_certain(text: str) -> bool:
    """True where a line without a code still says that a call or a stage failed."""
    return _CERTAIN.search(text) is not None


def result_of(text: str) -> str:
    """What a call returned, in words, or ""."""
    match = _RESULT.search(text)
    if match is None:
        return ""
    return RESULTS.get(int(match[1], 16) if match[1] else int(match[2]), "")


def quoted(text: str) -> str:
    """What a line says behind its code, pid and time; cut where it is long."""
    said = " ".join(_LEAD.sub("", text, count=1).split())
    said = _HCCP.sub("", said)
    return said if len(said) <= QUOTED_MOST else said[: QUOTED_MOST - 3] + "..."
