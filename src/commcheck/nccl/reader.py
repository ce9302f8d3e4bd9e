"""NCCL lines into facts: heads, then a dispatch on the message's first word.

A new process is only believed after a few lines: a line whose head was cut may name a host that
does not exist. What the first lines say is kept and counted once the process is sure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from commcheck.lazy import regex
from commcheck.nccl import messages, wrappers
from commcheck.nccl.comms import Registry
from commcheck.nccl.facts import Diag, Job, Process
from commcheck.nccl.header import Head, parse_head
from commcheck.nccl.loose import Loose
from commcheck.nccl.places import At

HEADS_MOST: Final = 1 << 17
"""Heads remembered by a reader: 32,768 ranks with a few threads each."""

HELD_LINES: Final = 3
"""Lines of a new process that are held back until it is sure to exist."""

PARTIAL_MOST: Final = 64
"""Records that one line may be cut into by a container's log."""

_DIAG: Final = regex(r"([\w.-]{1,64}):(\d{1,10})$")
_TAG: Final = regex(r"(?:\[(OK|INFO)\]\s+)?(.*)", re.DOTALL)
_LEVELS: Final = ("INFO ", "WARN ", "TRACE ", "CALL ")


class _Speaker:
    """A head with the process it stands for: what the cache of heads holds."""

    __slots__ = ("file", "proc", "tid")

    def __init__(self, proc: Process, tid: int, file: str) -> None:
        self.proc = proc
        self.tid = tid
        self.file = file


class Desk:
    """What all files of a job share: facts, communicators, processes."""

    def __init__(self) -> None:
        self.job = Job()
        self.registry = Registry(self.job)
        self.on_error = messages.Errors(self.job)
        self.heads: dict[str, _Speaker] = {}  # those of the file that is being read
        self._scopes: dict[tuple[str, int, int], int] = {}
        self._ends: dict[str, list[str]] = {}  # ends of sure host names

    def process(self, host: str, pid: int, at: At) -> Process:
        """The process of a head; files in which a pid means another one have their own."""
        scope = self._scopes.get((host, pid, at[0]), 0)
        key = (host, pid, scope)
        proc = self.job.procs.get(key)
        if proc is None:
            proc = self.job.procs[key] = Process(host, pid, at)
        return proc

    def other_process(self, proc: Process, at: At) -> Process:
        """The same host and pid in another file is another container's process.

        Its facts so far go along: they were printed before anything told the two apart.
        """
        self._scopes[proc.host, proc.pid, at[0]] = at[0] + 1
        self.heads.clear()  # they stand for the first process
        twin = self.process(proc.host, proc.pid, at)
        twin.held = None
        twin.version, twin.network, twin.nics = proc.version, proc.network, proc.nics
        twin.oob, twin.driver, twin.provider = proc.oob, proc.driver, proc.provider
        twin.ofi_nics = proc.ofi_nics
        return twin

    def believe(self, proc: Process) -> None:
        """The process exists: its first lines count."""
        held, proc.held = proc.held or [], None
        if proc.host not in self.job.hosts:
            for start in range(1, len(proc.host)):
                self._ends.setdefault(proc.host[start:], []).append(proc.host)
        self.job.hosts.add(proc.host)
        for line in held:
            line()

    def seems_damaged(self, proc: Process) -> bool:
        """True where the name is a longer one cut short, or one glued to the text before it.

        Then the whole name says much more, as the same pid.
        """
        few = 2 * len(proc.held or ())
        inside = (proc.host[start:] for start in range(1, len(proc.host)))
        return any(
            other.lines >= few
            for host in (*self._ends.get(proc.host, ()), *inside)
            if (other := self.job.procs.get((host, proc.pid, 0))) is not None
        )

    def finish(self) -> Job:
        """After the last file: processes of few lines are believed unless their name seems cut."""
        unsure = [
            (len(proc.held), key, proc)
            for key, proc in self.job.procs.items()
            if proc.held is not None
        ]
        for lines, key, proc in sorted(unsure, key=lambda each: -each[0]):
            if self.seems_damaged(proc) and lines <= HELD_LINES:
                self.job.stats.fragments += lines
                self.job.stats.nccl_lines -= lines
                del self.job.procs[key]
            else:
                self.believe(proc)
        for proc in list(self.job.procs.values()):
            self.registry.finish(proc)
        return self.job


class FileReader:
    """Reads the lines of one file; a ``scan.Lines``."""

    def __init__(self, desk: Desk, name: str) -> None:
        self._desk = desk
        self._job = desk.job
        self._file = len(desk.job.files)
        desk.job.files.append(name)
        self._heads = desk.heads = {}
        self._loose = Loose(desk, self._file)
        self._partial: dict[str, list[str]] = {}

    def clean(self, text: str, numbers: Sequence[int], *, careful: bool) -> None:
        """Whole lines without anything to clean, and the number of each: the fast way."""
        heads, file, handlers = self._heads, self._file, messages.HANDLERS
        desk, stats, channel = self._desk, self._job.stats, self._desk.registry.channel
        for number, line in zip(numbers, text.split("\n"), strict=True):
            head, token, message = line.partition(" NCCL INFO ")
            if token:
                speaker = heads.get(head)
                if speaker is None or " NCCL " in message:
                    self._logical(line, number, whole=True)
                    continue
                stats.nccl_lines += 1
                proc = speaker.proc
                if message[:8] == "Channel " and proc.held is None:
                    proc.lines += 1
                    proc.last = at = (file, number)
                    if not channel(proc, speaker.tid, message, at):
                        stats.fragments += 1
                    continue
                handle = handlers.get(message.partition(" ")[0])
                if handle is None or proc.held is not None or speaker.file:
                    self._info(speaker, message, (file, number), "", whole=True)
                    continue
                proc.lines += 1
                proc.last = at = (file, number)
                handle(desk, proc, speaker.tid, message.rstrip(), at, "", True)
            elif "NCCL" in line:
                self._logical(line, number, whole=True)
            elif careful and line:
                self.other(line, number)

    def hit(self, line: bytes, number: int, *, whole: bool) -> None:
        """A line that holds ``NCCL``."""
        text = wrappers.cleaned(line)
        if whole and "\n" not in text and "[repeated " not in text and text[:1] != "{":
            self.clean(text, (number,), careful=False)
            return
        for part in text.split("\n"):
            self._logical(part, number, whole=whole)

    def other(self, line: bytes | str, number: int) -> None:
        """A line without ``NCCL``: the rest of a cut record, or something else worth reading."""
        text = line if isinstance(line, str) else wrappers.cleaned(line)
        for part in text.split("\n"):
            record = wrappers.decode(part) if part[:1] == "{" or part[:2] == "20" else None
            if record is not None and (record.goes_on or self._partial.get(record.stream)):
                self._logical(part, number, whole=True)
            elif record is not None:
                self._loose.line(record.text, number)
            else:
                self._loose.line(part, number)

    def _logical(self, text: str, number: int, *, whole: bool) -> None:
        record = wrappers.decode(text)
        if record is not None:
            parts = self._partial.pop(record.stream, [])
            parts.append(record.text)
            if record.goes_on and len(parts) < PARTIAL_MOST:
                self._partial[record.stream] = parts
                return
            inner = "".join(parts)
            nested = wrappers.decode(inner)
            text = record.prefix + (nested.prefix + nested.text if nested else inner)
        elif text[:1] in ("{", '"', " ") and text.lstrip()[:1] in ("{", '"'):
            self._job.stats.unread_records += 1
        text, more = wrappers.without_repeats(text)
        self._job.stats.repeated += more
        for piece in text.split("\n"):
            self._split(piece, number, whole=whole)

    def _split(self, text: str, number: int, *, whole: bool) -> None:
        """One logical line: one head, or several where lines were glued together."""
        at = (self._file, number)
        token = _token(text, 0)
        if token is None:
            if text.find(" NCCL DIAG ") > 0:
                self._diag(text, at)
                return
            if text.startswith(("NCCL INFO ", "NCCL WARN ")):
                self._job.stats.fragments += 1
            self._loose.line(text, number)
            return
        if self._known(text, token, at, whole=whole):
            return
        head = parse_head(text, token[0], self._job.hosts)
        before = 0
        while token is not None:
            end, level = token
            body = end + 6 + len(level)
            follower = _token(text, body)
            next_head = (
                parse_head(text, follower[0], self._job.hosts, first=False) if follower else None
            )
            stop = len(text) if follower is None else follower[0]
            if next_head is not None:
                stop = next_head.start
            if head is None:
                self._job.stats.fragments += 1
                if level == "WARN ":
                    self._loose.line(text[body:stop], number)
            else:
                prefix = text[before : head.start]
                # Where the next line begins is known: this one is whole. Else its end is junk.
                clean = next_head is not None or (follower is None and whole)
                self._record(head, level, text[body:stop], prefix, text, end, at, whole=clean)
            before, token, head = stop, follower, next_head

    def _known(self, text: str, token: tuple[int, str], at: At, *, whole: bool) -> bool:
        """A line whose head was read before, behind a time that is new on each line."""
        end, level = token
        words = text[:end].rsplit(" ", 2)
        if level != "INFO " or len(words) < 3 or " NCCL" in words[0]:
            return False
        speaker = self._heads.get(f"{words[1]} {words[2]}")
        if speaker is None or _token(text, end + 11) is not None:
            return False
        self._job.stats.nccl_lines += 1
        self._info(speaker, text[end + 11 :], at, words[0], whole=whole)
        return True

    def _record(
        self,
        head: Head,
        level: str,
        message: str,
        prefix: str,
        text: str,
        end: int,
        at: At,
        *,
        whole: bool,
    ) -> None:
        proc = self._desk.process(head.host, head.pid, at)
        speaker = _Speaker(proc, head.tid, head.file)
        if prefix == text[: head.start] and not head.stamp and wrappers.time_s(prefix) is None:
            # With what launchers put in front, unless a time in it is wanted of each line.
            if len(self._heads) >= HEADS_MOST:
                self._heads.clear()
            self._heads[text[:end]] = speaker
        elif text[head.start - 1] == " " and len(self._heads) < HEADS_MOST:
            self._heads[text[head.start : end]] = speaker
        self._job.stats.nccl_lines += 1
        if prefix and proc.lines < 100:
            self._told(proc, prefix)
        # The first time on the line: a launcher's stands on every line, in a zone of its own.
        when = prefix
        if level == "INFO ":
            self._info(speaker, message, at, when, whole=whole)
        elif level == "WARN ":
            warn, file = self._desk.on_error.warn, head.file
            self._take(speaker, lambda: warn(proc, message, at, when, file), at)

    @staticmethod
    def _told(proc: Process, prefix: str) -> None:
        told = wrappers.told_by(prefix)
        if told.rank is not None and proc.global_rank is None:
            proc.global_rank = told.rank
        if told.local_rank is not None:
            proc.local_rank = told.local_rank

    def _info(self, speaker: _Speaker, text: str, at: At, when: str, *, whole: bool) -> None:
        proc = speaker.proc
        if proc.held is None:
            proc.lines += 1
            proc.last = at
            if speaker.file:
                return  # a step of an error's ladder has no text of its own
            word, _, _ = text.partition(" ")
            handle = messages.HANDLERS.get(word)
            if handle is not None:
                # Terminals fill lines with blanks; only a setting's own may mean something.
                handle(self._desk, speaker.proc, speaker.tid, text.rstrip(), at, when, whole)
            elif word[:1] in "0123456789[" or word[:5] in ("NCCL_", "ncclC"):
                messages.by_shape(self._desk, speaker.proc, speaker.tid, text, at, when, whole)
            elif ":" in word and word[-1].isdigit():
                messages.ladder(proc, speaker.tid, text.rstrip(), at)
            return
        self._take(speaker, lambda: self._info(speaker, text, at, when, whole=whole), at)

    def _take(self, speaker: _Speaker, line: Callable[[], None], at: At) -> None:
        """A line of a process that may not be sure yet."""
        proc = speaker.proc
        proc.files.add(at[0])
        if proc.held is None:
            line()
            return
        proc.held.append(line)
        enough = 4 * HELD_LINES if self._desk.seems_damaged(proc) else HELD_LINES
        if len(proc.held) > enough:
            self._desk.believe(proc)

    def _diag(self, text: str, at: At) -> None:
        end = text.find(" NCCL DIAG ")
        match = _DIAG.search(text[max(0, end - 80) : end])
        if match is None:
            self._job.stats.fragments += 1
            return
        self._job.stats.nccl_lines += 1
        body = _TAG.fullmatch(text[end + 11 :])
        tag, said = (body[1] or "", body[2]) if body else ("", text[end + 11 :])
        if len(self._job.diag) < 10_000:
            self._job.diag.append(Diag(match[1], int(match[2]), tag, said.strip(), at))

    def close(self, *, cut: bool) -> None:
        """After the last line. ``cut``: it had no end."""
        partial, self._partial = self._partial, {}
        for parts in partial.values():  # of each stream of a container
            self._split("".join(parts), 0, whole=False)
        if cut:
            self._job.stats.cut_files.append(self._file)


def _token(text: str, start: int) -> tuple[int, str] | None:
    """Where the next `` NCCL LEVEL `` begins, and the level."""
    at = text.find(" NCCL ", start)
    while at >= 0:
        for level in _LEVELS:
            if text.startswith(level, at + 6):
                return at, level
        at = text.find(" NCCL ", at + 6)
    return None
