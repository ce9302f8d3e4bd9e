"""Rules on CUDA and NVLink SHARP: LOG-041 and LOG-043."""

from __future__ import annotations

from typing import Final

from commcheck.nccl import causes_errors
from commcheck.nccl.case import Case
from commcheck.nccl.rules_errors import hosts_of, on, plain, short
from commcheck.nccl.ruling import Found, Rule, Ruling, other, right, wrong
from commcheck.report.ranges import fold_hosts

_FAILED: Final = plain("LOG-041", causes_errors.CUDA, "cuda")
_FULL: Final = plain("LOG-041", causes_errors.GPU_MEMORY, "gpu-memory")


def _cuda(case: Case) -> Ruling:
    return wrong(*_FAILED(case).found, *_FULL(case).found)


def _nvls(case: Case) -> Ruling:
    errors = case.of_kind("nvls")
    said = {proc: proc.nvls for proc in case.procs if proc.nvls is not None}
    split = (
        {
            case.machine(p.host)
            for p in said
            if len({on for q, on in said.items() if case.machine(q.host) == case.machine(p.host)})
            > 1
        }
        if len(set(said.values())) > 1
        else set()
    )
    if not errors and not split:
        if said:
            return right()
        return other("NVLS is not mentioned: fewer than three GPUs in the domain, or switched off")
    hosts = hosts_of(case, errors) or tuple(sorted(split))
    return wrong(
        Found(
            rule="LOG-043",
            cause=causes_errors.NVLS,
            reason=f"{short(errors[0])}{on(hosts)}"
            if errors
            else f"NVLS multicast works only on some GPUs of {fold_hosts(hosts)}",
            hosts=hosts,
            evidence=tuple(
                case.where([*(e.at for e in errors), *(p.nvls_at for p in said if split)])
            ),
        )
    )


RULES: Final = (
    Rule("LOG-041", "CUDA calls succeed", _cuda),
    Rule("LOG-043", "NVLink SHARP works alike", _nvls),
)
