"""The error classes, grouped by who must act on them.

``UsageError``: the operator's input is wrong; nothing was contacted; exit code 2.
``HostError``: one host could not be judged at all; the run goes on with the others.
``Unjudgeable``: one check could not be judged; the host's other checks are.
"""

from __future__ import annotations

from commcheck.lazy import dataclass


class CommcheckError(Exception):
    """Anything commcheck raises on purpose."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text file; lines and columns count from 1."""

    path: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


class UsageError(CommcheckError):
    """The operator's input is wrong: stop before any host is contacted, exit code 2.

    ``problems`` are complete lines, ``path:line:column: error: what [rule]`` where a position is
    known, so that a person mends all of a file at once.
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class InventoryError(UsageError):
    """The inventory, or a pattern over it, is wrong."""


class PlaybookError(UsageError):
    """A playbook is wrong."""


class CheckError(UsageError):
    """A check file, or the folder of checks, is wrong."""


class RunFolderError(UsageError):
    """A folder that should hold a run does not."""


class NotKept(CommcheckError):
    """What a host said, or what became of it, cannot be written: the run ends, exit code 3."""


class HostError(CommcheckError):
    """Nothing (more) can be learnt from this host. ``code`` is stable and machine readable."""

    def __init__(self, code: str, reason: str, remedy: str = "") -> None:
        self.code = code
        self.reason = reason
        self.remedy = remedy
        super().__init__(reason)

    def __reduce__(self) -> tuple[type[HostError], tuple[str, str, str]]:
        """How it comes from another process: an exception alone would bring its message only."""
        return type(self), (self.code, self.reason, self.remedy)


class Unreachable(HostError):
    """No session could be opened."""


class ConnectionLost(HostError):
    """The session broke while commands were running."""


class HostDeadline(HostError):
    """The host used up its time; what was answered before is kept."""


class Interrupted(HostError):
    """The operator stopped the run."""


class Unjudgeable(CommcheckError):
    """One check cannot be judged; ``type_name`` (the class's name) is the JUnit error type."""

    def __init__(self, reason: str, remedy: str = "", *, type_name: str = "") -> None:
        self.reason = reason
        self.remedy = remedy
        self.type_name = type_name or type(self).__name__
        super().__init__(reason)


class CommandMissing(Unjudgeable):
    """The tool is not on the host, or not executable."""


class CommandTimedOut(Unjudgeable):
    """The command ran into its own time limit and was killed."""


class CommandFailed(Unjudgeable):
    """The command answered that it could not do it."""


class CommandNotRun(Unjudgeable):
    """The command was never run or its answer was lost (host deadline, lost connection)."""


class SudoRefused(Unjudgeable):
    """The command needs root and ``sudo -n`` was refused."""


class OutputTruncated(Unjudgeable):
    """The answer was longer than its cap, and the reader needs all of it."""


class ParseError(Unjudgeable):
    """The command answered, but not in a form we know."""

    def __init__(self, tool: str, text: str, wanted: str = "") -> None:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        seen = f"begins {first[:120]!r}" if first else "is empty"
        hint = f", wanted {wanted}" if wanted else ""
        super().__init__(
            f"cannot read the output of {tool}: it {seen}{hint}",
            f"if the output is right, send it in: commcheck read {tool} FILE shows what is read",
        )
        self.tool = tool
