"""The lines with which a communicator begins and ends, of every version."""

from __future__ import annotations

from typing import Final, NamedTuple

from commcheck.lazy import regex

_LIFE: Final = regex(
    r"(?:\[Rank \d+\] )?(?:ncclComm\w+ )?comm (0x[0-9a-f]+) rank (\d{1,9}) "
    r"nranks (\d{1,9}) cudaDev (-?\d{1,9})(?: nvmlDev (-?\d{1,9}))? ?"
    r"(?:busId ([0-9a-f]+))?(?: commId (0x[0-9a-f]+))?"
    r"(?: parent (0x[0-9a-f]+)(?: (?:splitCount|childCount) (\d{1,9}))?"
    r" color (-?\d+) key -?\d+)? ?- "
    r"(Init START|Init COMPLETE|Destroy COMPLETE|Abort COMPLETE)"
)
PLACED: Final = regex(
    r"comm (?P<ptr>0x[0-9a-f]+) rank (?P<rank>\d{1,9}) nRanks (?P<nranks>\d{1,9}) "
    r"nNodes (?P<nodes>\d{1,9}) "
    r"localRanks (?P<local>\d{1,9}) localRank \d+ MNNVL (?P<mnnvl>[01])"
)


class Life(NamedTuple):
    """What an Init, Destroy or Abort line says; "" for what its version does not print."""

    pointer: str
    rank: int
    nranks: int
    cuda_dev: int
    nvml_dev: int | None
    bus: str
    id: str
    parent: str
    split: str  # the number of the split that made it
    color: str
    what: str

    @classmethod
    def of(cls, text: str) -> Life | None:
        """None where it is no such line."""
        match = _LIFE.fullmatch(text)
        if match is None:
            return None
        pointer, rank, nranks, dev, nvml, *texts = match.groups("")
        return cls(pointer, int(rank), int(nranks), int(dev), int(nvml) if nvml else None, *texts)
