"""Lines as the tool printed them: without the prefixes of launchers, and without NCCL's own lines.

Launchers mark lines with rank, time or pod; NCCL writes into the same stream, also in the middle
of a row. What is cut out is kept.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.command import clean
from commcheck.lazy import dataclass, regex
from commcheck.nccl.wrappers import decode


@dataclass(frozen=True, slots=True)
class Line:
    """One line. ``number`` counts from 1 in the file; ``rank`` is told by a launcher's prefix."""

    number: int
    text: str
    rank: int | None = None


_PREFIXES: Final = (
    # Open MPI 4 and 5 --tag-output; PRRTE puts the job's name before "@".
    regex(r"\[(?:[\w.@-]+@)?\d+,(?P<rank>\d+)\](?:\[[^\]\s]*\])?<std(?:out|err|diag)>: ?"),
    # Open MPI --timestamp-output, alone or before the tag.
    regex(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}(?:<std(?:out|err|diag)>: ?|(?=\[))"),
    # kubectl logs --timestamps, --prefix.
    regex(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) "),
    regex(r"\[pod/[^\]\s]+\] "),
    # torchrun --tee; MPICH -l; srun --label.
    regex(r"\[default(?P<rank>\d+)\]:"),
    regex(r"\[(?P<rank>\d+)\] "),
    regex(r" *(?P<rank>\d+): "),
)

_NCCL: Final = regex(
    r":\d+:\d+ \[-?\d+\] (?:[^\n]*?)NCCL (?:INFO|WARN|TRACE|VERSION|ABORT)|"
    r":\d+:\d+ \[-?\d+\] (?:INFO|WARN|TRACE)\b"
)
_HOST: Final = regex(r"(?:\[[\d :./-]+\] )?\S*$")
_WORDS: Final = "sum|prod|min|max|avg|mulsum|none|N/A"
_TYPES: Final = "u?int(?:8|32|64)|float(?:16)?|half|double|bfloat16|f8e4m3|f8e5m2|fp8_e4m3|fp8_e5m2"
_NUMBER: Final = r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]\d+)?"
# A row's last field and a host's name without a space between: the field is taken first.
_GLUED: Final = regex(rf"(?:-1|{_NUMBER}|{_WORDS}|{_TYPES})(?=[A-Za-z0-9])")
_ROW_PART: Final = regex(rf"\s*(?:(?:{_NUMBER}|{_WORDS}|{_TYPES})\s+)*")
_PREAMBLE: Final = regex(r"\s*\d+\s+\d+\s+\S+\s+\S+\s+")


_HEADS: Final = ("# nccl-tests version ", "# nThread ", "# Using devices", "data_size(Bytes):")
"""How the tools' first lines begin."""

_PREFIX_MOST: Final = 200
_ENDLESS: Final = regex(r"\d{41,}")


def _without_prefix(text: str) -> str:
    """The text without what stands in front of each line: times, hosts, ``trainer-1  | ``.

    Its shape is that of the tool's first line, in which digits may be others on each line.
    """
    for head in _HEADS:
        at = text.find(head)
        start = text.rfind("\n", 0, at) + 1
        if at < 0 or f"\n{head}" in text:
            continue
        prefix = text[start:at]
        if 0 < len(prefix) <= _PREFIX_MOST and "#" not in prefix:
            shape = re.sub(r"\d+", lambda _: r"\d+", re.escape(prefix))
            return re.sub(rf"^{shape}", "", text, flags=re.MULTILINE)
    return text


def lines_of(text: str) -> list[Line]:
    """The lines of a file, without launchers' prefixes, colours and carriage returns.

    Digits of which no tool prints so many are no number here: others could not hold it.
    """
    lines = _by_launcher(_ENDLESS.sub("?", clean(text)))
    bare = "\n".join(line.text for line in lines)
    stripped = _without_prefix(bare)
    if stripped == bare:
        return lines
    texts = stripped.split("\n")
    return [Line(line.number, text, line.rank) for line, text in zip(lines, texts, strict=True)]


def _by_launcher(text: str) -> list[Line]:
    found = []
    for number, raw in enumerate(text.split("\n"), start=1):
        record = decode(raw) if raw[:2] == '{"' else None  # of a container's log
        # A shipper may put several lines into one record.
        for rest in clean(record.text).rstrip("\n").split("\n") if record else (raw,):
            bare, rank = _bare(rest)
            found.append(Line(number, bare, rank))
    return found


def _bare(text: str) -> tuple[str, int | None]:
    """A line behind launchers' prefixes, of which there may be several, and the rank they tell."""
    rank: int | None = None
    while True:
        found = next(filter(None, (pattern.match(text) for pattern in _PREFIXES)), None)
        if found is None or not found.end():
            return text, rank
        if "rank" in found.re.groupindex:
            rank = int(found["rank"])
        text = text[found.end() :]


def without_nccl(text: str) -> tuple[str, str]:
    """What the tool wrote on a line, and NCCL's record on it ("" where there is none)."""
    if "NCCL version " in text and text.lstrip().startswith("NCCL version "):
        return "", text.strip()
    match = _NCCL.search(text)
    if match is None:
        return text, ""
    host = _HOST.search(text[: match.start()])
    at = match.start() if host is None else host.start()
    before, glued = text[:at], text[at : match.start()]
    if _ROW_PART.fullmatch(before) and (cut := _field_end(before, glued)):
        at += cut
    return text[:at], text[at:]


def _field_end(before: str, glued: str) -> int:
    """How much of ``glued`` is still the row's: ``-1gpu-a01`` is the root -1 and a host."""
    if not before.strip() and not glued[:1].isdigit() and not glued.startswith("-"):
        return 0
    if _PREAMBLE.fullmatch(before) and glued.startswith("-1"):
        return 2  # the root; a host that begins with a digit would else lend it one
    match = _GLUED.match(glued)
    return match.end() if match and before.strip() else 0
