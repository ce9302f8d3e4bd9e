"""What launchers, containers and log shippers put around a line, and how it comes off again.

Two kinds: wrappers that encode the line (Docker and shipper JSON, CRI) must be decoded and may cut
one line into several records; all others stand in front of it, and are only looked at for what
they tell (time, rank, pod).
"""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime
from typing import Final

from commcheck.command import ANSI
from commcheck.lazy import dataclass, regex

_CRI: Final = regex(r"(\d{4}-\d\d-\d\dT\S{9,30}) (stdout|stderr) ([FP]) ?(.*)", re.DOTALL)
_KEYS: Final = ("log", "message", "msg", "text", "textPayload", "line", "MESSAGE")
"""Of Docker, shippers, CloudWatch, Elasticsearch, Google Cloud, Loki (line) and journald."""

_INSIDE: Final = ("_source", "jsonPayload")
_MEMBER: Final = regex(rf'\s*"(?:{"|".join(_KEYS)})": *("(?:[^"\\]|\\.)*"),?\s*')
"""A line of a document that was printed with indents."""

_REPEATED: Final = regex(r" *\[repeated (\d{1,9})x across cluster\].*", re.DOTALL)
_RANK: Final = regex(r"\[rank(\d{1,6})\]:")
_LOCAL: Final = regex(r"\[default(\d{1,4})\]:")
_MPI: Final = regex(r"\[(?:[\w.-]+@)?\d+,(\d{1,6})\]<std(?:out|err|diag)>: ?")
_TASK: Final = regex(r"(\d{1,6}): ")
_TIME: Final = regex(
    r"(\d{4})-(\d\d)-(\d\d)[T _](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
)


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a container's log: the text in it, and whether the line goes on in the next."""

    text: str
    goes_on: bool
    stream: str
    prefix: str  # what the wrapper itself told, as text: time, pod


def decode(line: str) -> Record | None:
    """The record of a Docker, shipper, exported or CRI line, or None where it is a plain line."""
    first = line[:1]
    if first == "{":
        return _json(line)
    if first in (" ", "\t", '"') and (member := _MEMBER.fullmatch(line)):
        return _member(member[1])
    if '"' in line and (field := _csv(line)):
        return Record(field, goes_on=False, stream="", prefix="")
    match = _CRI.fullmatch(line) if line[:2] == "20" else None
    if match is None:
        return None
    return Record(match[4], match[3] == "P", match[2], match[1] + " ")


def _json(line: str) -> Record | None:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    text, key = _text(data)
    if text is None:
        inside = (value for name in _INSIDE if isinstance(value := data.get(name), dict))
        text, _ = _text(next(inside, {}))
    if text is None:
        return None
    told = str(data.get("time") or data.get("@timestamp") or "")
    pod = data.get("kubernetes")
    if isinstance(pod, dict) and isinstance(pod.get("pod_name"), str):
        told += f" [pod/{pod['pod_name']}]"
    docker = key == "log" and "stream" in data and "kubernetes" not in data
    whole = text.endswith("\n")
    return Record(
        text.removesuffix("\n").removesuffix("\r"),
        docker and not whole,
        str(data.get("stream", "")),
        f"{told} " if told else "",
    )


def _text(data: dict[str, object]) -> tuple[str | None, str]:
    """The line in a record, and its key."""
    found = ((value, key) for key in _KEYS if isinstance(value := data.get(key), str))
    return next(found, (None, ""))


def _member(quoted: str) -> Record | None:
    try:
        text = str(json.loads(quoted))
    except ValueError:
        return None
    return Record(text.removesuffix("\n"), goes_on=False, stream="", prefix="")


def _csv(line: str) -> str:
    """The quoted field of a table's row that holds NCCL's line, or ""."""
    at = line.find(" NCCL ")
    start = line.rfind('"', 0, at) if at > 0 else -1
    if start < 0 or (start > 0 and line[start - 1] != ","):
        return ""
    try:
        row = next(csv.reader([line]), [])
    except csv.Error:
        return ""
    return next((field for field in row if " NCCL " in field), "")


def cleaned(line: bytes) -> str:
    """A physical line as text: no colours, no NUL, and of a redrawn line what NCCL wrote."""
    text = line.decode("utf-8", "replace")
    if "\x1b" in text:
        text = ANSI.sub("", text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    text = text.rstrip("\r")
    if "\r" in text:
        text = "\n".join(part for part in text.split("\r") if "CCL" in part)
    return text.removeprefix("\ufeff")


def without_repeats(text: str) -> tuple[str, int]:
    """The text, and how many more times Ray's de-duplicator says that it came."""
    match = _REPEATED.search(text) if "[repeated " in text else None
    return (text, 0) if match is None else (text[: match.start()], int(match[1]))


def time_s(text: str) -> float | None:
    """The first date and time in it, in seconds; a missing zone counts as UTC.

    Comparable inside one source only: containers log UTC, NCCL local time.
    """
    match = _TIME.search(text[:200])
    if match is None:
        return None
    try:
        whole = datetime(*(int(part) for part in match.groups()[:6]), tzinfo=UTC)  # type: ignore[misc,arg-type] # six ints
    except ValueError:
        return None
    return whole.timestamp() + float(f"0.{match[7] or 0}")


@dataclass(frozen=True, slots=True)
class Told:
    """What stands in front of a line tells: global rank and local rank."""

    rank: int | None = None
    local_rank: int | None = None


def told_by(prefix: str) -> Told:
    """What the wrappers in front of a header say; nothing is guessed."""
    if not prefix:
        return Told()
    rank = _RANK.search(prefix) or _MPI.search(prefix) or _TASK.fullmatch(prefix)
    local = _LOCAL.search(prefix)
    return Told(
        rank=int(rank[1]) if rank else None,
        local_rank=int(local[1]) if local else None,
    )
