"""Rules that find no fault: what looks wrong and is not, and what hides whether something is.

LOG-005, LOG-012, LOG-034, LOG-051, LOG-053.
"""

from __future__ import annotations

from typing import Final

from commcheck.nccl.case import Case
from commcheck.nccl.rules_errors import FLUSHED, is_secondary, of_peers, peer_of, status_of
from commcheck.nccl.ruling import INFO_EVERYWHERE, Rule, Ruling, other, right, unknown
from commcheck.report.counts import many


def _probing(case: Case) -> Ruling:
    if case.network is None:
        return unknown("no line says which network is used", INFO_EVERYWHERE)
    if case.plugin:
        return other(f"the plugin of {case.network} was found")
    return right("NET/Plugin lines that find no plugin are normal: the built-in network is used")


def _retried(case: Case) -> Ruling:
    if not case.job.retrying:
        return right() if case.world else unknown("no line of a communicator", INFO_EVERYWHERE)
    comm = case.world
    if comm is None or not all(member.complete for member in comm.members.values()):
        return unknown(
            f"tried again: {many(case.job.retrying, 'connection')}; that init ended is not known",
            "look again in two minutes",
        )
    again = many(case.job.retrying, "connection")
    return right(f"tried again: {again}, and init ended: a slow start")


def _flushed(case: Case) -> Ruling:
    completions = case.of_kind("completion")
    flushed = [error for error in completions if status_of(error) == FLUSHED]
    if not flushed:
        return right() if case.world else unknown("no line of a communicator", INFO_EVERYWHERE)
    if any(not is_secondary(error) for error in completions):
        return other("the first error of these connections is in the log")
    peers = sorted({peer_of(error) for error in flushed if peer_of(error)})
    return unknown(
        f"{many(len(flushed), 'flushed request')} (status 5){of_peers(peers)} after an error that "
        "is in another log",
        f"collect the log of {', '.join(peers) or 'the peer'}",
    )


def _whole(case: Case) -> Ruling:
    if case.damaged:
        return unknown(f"nothing can be counted: {case.damaged}", case.turn_on_whole)
    if case.job.stats.cut_files:
        return right("a file ends in the middle of a line: what came after is not known")
    return right()


def _stack(case: Case) -> Ruling:
    if case.job.rccl is None:
        return right()
    return right("this is RCCL: rules on CUDA and NVLS do not apply")


RULES: Final = (
    Rule("LOG-005", "no plugin is missed", _probing),
    Rule("LOG-012", "connections that were tried again came up", _retried),
    Rule("LOG-034", "the first error is in the log", _flushed),
    Rule("LOG-051", "the log is whole", _whole),
    Rule("LOG-053", "the library is NVIDIA's", _stack),
)
