"""What a host's running jobs set, as one of the three checks judges it. Pure."""

from __future__ import annotations

from commcheck.check import Unread, not_applicable, tries, undecidable
from commcheck.frameworks.judge import judge
from commcheck.frameworks.limits import Limits
from commcheck.frameworks.running import COMMAND_LINES, CommandLines, settings
from commcheck.lazy import dataclass
from commcheck.model import Verdict
from commcheck.nccl.processes import USERS, Users


@dataclass(frozen=True, slots=True)
class Seen:
    """The processes that use accelerators, and the flags they were started with."""

    users: Users | Unread = tries(USERS)
    lines: CommandLines | Unread = tries(COMMAND_LINES)


def judge_host(check: str, seen: Seen, limits: Limits) -> tuple[Verdict, ...]:
    """Nothing to say where no job runs, or where its flags are of no framework that is known."""
    users, lines = seen.users, seen.lines
    if isinstance(users, Unread):
        return (_not_known(users),)
    if isinstance(lines, Unread):
        return (_not_known(lines),)
    if not users.processes:
        if users.hidden:
            return (undecidable("processes of other users could not be seen", turn_on="sudo -n"),)
        return (not_applicable("no process uses an accelerator"),)
    if not any(process.pid in lines.words for process in users.processes):
        return (undecidable("the command lines of the jobs could not be read", turn_on="sudo -n"),)
    found = settings(users, lines)
    if not found:
        return (
            not_applicable(
                "no command line names a setting of DeepSpeed, DDP, FSDP or Megatron; for files: "
                "commcheck analyze config FILE"
            ),
        )
    return judge(check, found, limits)


def _not_known(unread: Unread) -> Verdict:
    reason = f"what runs on the accelerators is not known: {unread.reason}"
    return undecidable(reason, turn_on=unread.remedy)
