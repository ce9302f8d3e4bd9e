"""The rule on errors that no other rule knows: LOG-056."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commcheck.model import Status
from commcheck.nccl import causes_errors
from commcheck.nccl.case import Case
from commcheck.nccl.errors import GOES_ON, LADDER, UNNAMED
from commcheck.nccl.facts import Error
from commcheck.nccl.flight_groups import some
from commcheck.nccl.rules_errors import first_cause, hosts_of, on, places_of, times
from commcheck.nccl.rules_program import host_of_rank
from commcheck.nccl.ruling import Found, Rule, Ruling, other, right, wrong


def first_error(case: Case) -> Error | None:
    """The first cause; where there is none, the first warning that may be one."""
    return first_cause(case) or next(iter(_unnamed(case)), None)


def _unnamed(case: Case) -> list[Error]:
    return [error for error in case.of_kind(*UNNAMED) if not error.secondary]


def _judge(case: Case) -> Ruling:
    errors = _unnamed(case)
    root = first_cause(case)
    if not errors:
        return right() if root or case.timeouts else _by_torch(case)
    if root is not None and root.kind not in {*UNNAMED, *GOES_ON}:
        return other(f"{len(errors)} more errors: another rule names the first one")
    ended = [error for error in errors if case.ended(error)]
    shown = ended or errors
    hosts = hosts_of(case, shown)
    how = "" if ended else ", and no error followed"
    return wrong(
        Found(
            rule="LOG-056",
            cause=causes_errors.UNNAMED,
            status=Status.FAIL if ended else Status.WARN,
            reason=f"{_said(shown)}{on(hosts)}{times(len(shown))}{how}",
            hosts=hosts,
            evidence=tuple(case.where(error.at for error in shown)),
            measured={"events": len(shown)},
            places=places_of(shown[0]),
        )
    )


def _by_torch(case: Case) -> Ruling:
    """PyTorch ended a process over NCCL, and no line of NCCL says why."""
    ended = [each for each in case.torch_ended if not each.stuck]
    if not ended or any(error.secondary for error in case.errors):
        return right()
    ranks = sorted({each.rank for each in ended if each.rank is not None})
    known = ranks if case.part is None else []
    return wrong(
        Found(
            rule="LOG-056",
            cause=causes_errors.UNNAMED,
            hosts=tuple(dict.fromkeys(h for r in known if (h := host_of_rank(case, r)))),
            reason=f"PyTorch ended {some(ranks) if ranks else 'a process'}, and no line of NCCL "
            f"says why: {' '.join(ended[0].text.split())[:200]}{times(len(ended))}",
            evidence=tuple(case.where(each.at for each in ended)),
            measured={"events": len(ended)},
        )
    )


def _said(errors: Sequence[Error]) -> str:
    first = errors[0]
    text = " ".join(first.text.split())[:200]
    return f"an error that NCCL tells no more of: {text}" if first.kind == LADDER else text


RULES: Final = (Rule("LOG-056", "no error without a rule of its own", _judge),)
