"""``nvidia-smi nvlink -e``: what each NVLink of each GPU counted since the GPU was last reset.

Up to H200 three counters a link; Blackwell has another dozen, of which some count what was mended.
The list has no last line; that it is whole is told by the exit code, and by GPUs of one name
having as many counters.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.nvidia_warnings import without_warnings
from commcheck.lazy import dataclass, regex

TOOL: Final = "nvidia-smi-nvlink-errors"

_GPU: Final = regex(r"GPU (\d{1,3}): (\S.*?) \(UUID: GPU-[0-9a-f-]{36}\)\s*")
_COUNTER: Final = regex(r"\s+Link (\d{1,2}): ([A-Z][A-Za-z0-9 /()-]{2,60}): (\S.{0,40}?)\s*")
_INACTIVE: Final = regex(
    r"\s+Link (\d{1,2}): <inactive>\s*|"
    r"\s*NVML: Unable to retrieve NVLink information as all links are inActive\s*"
)
_NUMBER: Final = regex(r"\d{1,20}")
_OTHER: Final = regex(r"N/A|<inactive>|\d{1,3}(?:\.\d+)?[eE][+-]?\d{1,3}|\d+\.\d+")


@dataclass(frozen=True, slots=True)
class LinkErrors:
    """The counters of one link, by the tool's own names; what is no count is left out."""

    gpu: int
    link: int
    counts: tuple[tuple[str, int], ...]

    def get(self, name: str) -> int | None:
        """A counter; None where the link has none of that name."""
        return dict(self.counts).get(name)


def parse(output: Output) -> tuple[LinkErrors, ...]:
    """The links, by GPU and number; none on cards without NVLink."""
    output = without_warnings(output)
    require_ok(output, "nvidia-smi nvlink -e")
    text = output.text
    names: list[str] = []
    seen: dict[tuple[int, int], dict[str, int | None]] = {}
    for line in text.splitlines(keepends=True):
        if not line.strip():
            continue
        if not line.endswith("\n"):
            raise ParseError(TOOL, text, "a whole last line")
        if (gpu := _GPU.fullmatch(line)) is not None:
            if int(gpu[1]) != len(names):
                raise ParseError(TOOL, text, "GPUs from 0 without a gap")
            names.append(gpu[2])
            continue
        if names and (inactive := _INACTIVE.fullmatch(line)) is not None:
            if inactive[1] is not None:
                seen.setdefault((len(names) - 1, int(inactive[1])), {})
            continue
        counter = _COUNTER.fullmatch(line)
        if counter is None or not names:
            raise ParseError(TOOL, text, f"a known line where it says {line.strip()[:60]!r}")
        mine = seen.setdefault((len(names) - 1, int(counter[1])), {})
        if counter[2] in mine:
            raise ParseError(TOOL, text, f"{counter[2]!r} of a link once")
        mine[counter[2]] = _value(counter[3], text)
    if not names:
        raise ParseError(TOOL, text, "lines like 'GPU 0: NAME (UUID: GPU-...)'")
    _require_alike(names, seen, text)
    return tuple(
        LinkErrors(gpu, link, tuple((n, v) for n, v in counts.items() if v is not None))
        for (gpu, link), counts in seen.items()
        if counts
    )


def _value(word: str, text: str) -> int | None:
    if _NUMBER.fullmatch(word):
        return int(word)
    if _OTHER.fullmatch(word):
        return None
    raise ParseError(TOOL, text, f"a count, not {word[:60]!r}")


def _require_alike(
    names: list[str], seen: dict[tuple[int, int], dict[str, int | None]], text: str
) -> None:
    """Every link that counts at all counts the same things; GPUs of a name have as many links."""
    links = {
        (name, sum(gpu == at for gpu, _ in seen))
        for at, name in enumerate(names)
        if any(gpu == at for gpu, _ in seen)
    }
    counted = {tuple(counts) for counts in seen.values() if counts}
    if len(links) != len({name for name, _ in links}) or len(counted) > 1:
        raise ParseError(TOOL, text, "as many links and counters of each GPU of one name")


NVLINK_ERRORS: Final = Reader(
    tool=TOOL, commands=(Command(("nvidia-smi", "nvlink", "-e"), timeout_s=30.0),), parse=parse
)
