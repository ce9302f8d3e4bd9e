"""A command as it is asked of a host, and its answer as text."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from commcheck.errors import CommandFailed, Unjudgeable
from commcheck.lazy import dataclass, regex
from commcheck.model import Subject

ANSI: Final = regex(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[@-Z\\-_])"
)
"""ECMA-48 control sequences: CSI, OSC, the string types, two-byte escapes."""

PLACE: Final = regex(r"[A-Za-z0-9_.:-]{1,64}")
"""What may be put in a command's place. Names come from sysfs, which is hostile too."""

GLOB: Final = regex(r"/[A-Za-z0-9_./*?@%:+,=\[\]-]{1,255}")
"""A pattern of absolute paths, as the operator's inventory names it: nothing that a shell runs."""

_LEADING_DASH: Final = regex(r"-")


@dataclass(frozen=True, slots=True)
class Command:
    """Words of a command, with places like ``{netdev}`` that a subject fills in.

    Never a shell string; the transport alone quotes. ``root``: run as root where the operator
    lets us (``sudo -n``). Output beyond ``cap_bytes`` is cut on the host. ``globs``: its places
    are patterns of absolute paths, which its own fixed script expands. ``said_as``: the words by
    which reports name it, where ``argv`` holds a script; no other command may have them.
    """

    argv: tuple[str, ...]
    timeout_s: float = 10.0
    root: bool = False
    cap_bytes: int = 1 << 20
    globs: bool = False
    said_as: tuple[str, ...] = ()

    def on(self, subject: Subject) -> Command:
        """The command for one subject. Raises ``Unjudgeable`` where a place cannot be filled."""
        names = _places(self.argv)
        return _filled(self, tuple(_value(name, subject) for name in names)) if names else self

    def __str__(self) -> str:
        return " ".join(self.said_as or self.argv)


IN_BRACES: Final = regex(r"\{(\w+)\}")
"""A place of a command, or of a remedy's, by name: ``{netdev}``."""


@lru_cache(maxsize=1024)
def _places(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the places in a command, each once."""
    return tuple(dict.fromkeys(name for word in argv for name in IN_BRACES.findall(word)))


def _value(name: str, subject: Subject) -> str:
    value = getattr(subject, name, None)
    if value is None:
        raise Unjudgeable(f"{subject.label or 'the host'} has no {name}")
    return str(value)


@lru_cache(maxsize=8192)  # the hosts of a fleet name their NICs alike
def _filled(command: Command, values: tuple[str, ...]) -> Command:
    names = _places(command.argv)
    for name, text in zip(names, values, strict=True):
        allowed = GLOB if command.globs else PLACE
        if not allowed.fullmatch(text) or _LEADING_DASH.match(text) or ".." in text:
            raise Unjudgeable(f"{name} {text[:64]!r} is no name we would put into a command")
    by_name = dict(zip(names, values, strict=True))

    def fill(words: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(IN_BRACES.sub(lambda match: by_name[match[1]], word) for word in words)

    return replace(command, argv=fill(command.argv), said_as=fill(command.said_as))


@dataclass(frozen=True, slots=True)
class Output:
    """What one command answered, as text. ``rc`` 124 means timed out, and never gets here."""

    stdout: str
    stderr: str = ""
    rc: int = 0
    truncated: bool = False

    @property
    def text(self) -> str:
        """stdout without terminal control sequences, with plain line ends."""
        return clean(self.stdout)

    @property
    def complaint(self) -> str:
        """The first line that says what went wrong, for a reason."""
        for text in (self.stderr, self.stdout):
            for line in clean(text).splitlines():
                if line.strip():
                    return line.strip()[:200]
        return "no message"


def clean(text: str) -> str:
    """Text without ANSI sequences, CR and NUL: what a parser should see."""
    if "\x1b" in text:
        text = ANSI.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\x00", "") if "\x00" in text else text


def whole_number(text: object, digits: int = 18) -> int | None:
    """The number that a text is, in ASCII digits and no more than so many; None for all else.

    Of what others wrote ``str.isdigit`` is not enough: it is true of a superscript two, and int()
    reads no more than 4,300 digits.
    """
    written = str(text)
    fits = written.isascii() and written.isdigit() and len(written) <= digits
    return int(written) if fits else None


def require_ok(output: Output, tool: str) -> None:
    """Raise ``CommandFailed`` with the tool's own words where it did not exit 0."""
    if output.rc != 0:
        raise CommandFailed(f"{tool} failed with exit code {output.rc}: {output.complaint}")
