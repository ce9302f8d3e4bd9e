"""The client's side of a conversation, with peers that are honest, hostile or gone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.collect.base import SUBJECTS, Frame, Frames, Request, State
from commcheck.collect.session import Chunk, Session, converse
from commcheck.errors import (
    CommandFailed,
    ConnectionLost,
    HostDeadline,
    HostError,
    Interrupted,
    Unreachable,
)
from tests.collect.shells import command

SESSION = Session(mark="run.1", deadline_s=100.0)
Say = Callable[[str], Iterator[Chunk | Exception | None]]


class Peer:
    """A host that says what a script tells it to; it knows the nonce, as a real one does."""

    def __init__(self, say: Say, *, second_s: float = 0.0) -> None:
        self.sent = b""
        self.closed = 0
        self.now = 0.0
        self._say = say
        self._second_s = second_s  # what a receive costs
        self._talk: Iterator[Chunk | Exception | None] | None = None

    def clock(self) -> float:
        return self.now

    def send(self, data: bytes) -> None:
        self.sent += data

    def receive(self, timeout_s: float) -> Chunk | None:
        assert timeout_s > 0
        if self._talk is None:
            nonce = re.search(rb"^N='?([0-9a-f]{32})", self.sent)
            assert nonce
            self._talk = self._say(nonce[1].decode())
        self.now += self._second_s
        said = next(self._talk, Chunk("out", b""))
        if isinstance(said, Exception):
            raise said
        if said is None:
            self.now += timeout_s
        return said

    def close(self) -> None:
        self.closed += 1


def both(nonce: str, words: str) -> Iterator[Chunk]:
    data = f"\n{nonce} {words}\n".encode()
    yield Chunk("out", data)
    yield Chunk("err", data)


def answer(nonce: str, number: int, out: bytes, tail: str = "0 2.0 plain") -> Iterator[Chunk]:
    yield from both(nonce, f"begin {number} 1.0")
    if out:
        yield Chunk("out", out)
    yield from both(nonce, f"end {number} {tail}")


def talk(
    peer: Peer, requests: Sequence[Request] = (), session: Session = SESSION
) -> tuple[list[Frame], HostError | None]:
    frames = Frames()
    error = None
    try:
        converse(peer, session, lambda _subjects: requests, frames, clock=peer.clock)
    except HostError as raised:
        error = raised
    assert peer.closed
    return frames, error


def test_a_whole_conversation() -> None:
    def honest(nonce: str) -> Iterator[Chunk]:
        yield Chunk("out", b"Welcome to gpu-03\n")
        yield from answer(nonce, 0, b"kernel Linux\n")
        yield from answer(nonce, 1, b"hi\n")
        yield from both(nonce, "bye")

    peer = Peer(honest)
    frames, error = talk(peer, [command("echo", "hi")])
    assert error is None
    assert [(frame.key, frame.stdout, frame.rc) for frame in frames] == [
        (SUBJECTS, b"kernel Linux\n", 0),
        ("once: echo hi", b"hi\n", 0),
    ]
    assert b"c 1 1048577 10 0 echo hi\n" in peer.sent


def test_words_are_quoted_and_root_is_announced() -> None:
    def say(nonce: str) -> Iterator[Chunk]:
        yield from answer(nonce, 0, b"")

    peer = Peer(say)
    talk(peer, [command("x", "a b", "'; reboot", "$(id)", root=True, timeout_s=1.2, cap=9)])
    tail = peer.sent[peer.sent.rindex(b"c 1 ") :]
    assert tail.startswith(b"c 1 10 2 1 x 'a b' ''\"'\"'; reboot' '$(id)'\n#")
    assert re.search(rb"^\d+ root$", peer.sent, re.MULTILINE)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([], "it said nothing"),
        ([Chunk("out", b"\x1b[1mThis account is currently not available.\n")], "not available"),
        ([Chunk("err", b"sh: 1: head: not found\n"), Chunk("err", b"")], "head: not found"),
        ([Chunk("out", bytes(range(256)))], "it said"),
        ([ConnectionResetError("reset")], "it said nothing"),
    ],
)
def test_without_a_runner_the_host_is_unreachable(
    said: list[Chunk | Exception], words: str
) -> None:
    frames, error = talk(Peer(lambda _nonce: iter(said)))
    assert isinstance(error, Unreachable)
    assert (error.code, frames) == ("no-runner", [])
    assert words in error.reason
    assert error.reason.isprintable()


@pytest.mark.parametrize("end", [Chunk("out", b""), EOFError(), OSError("Socket is closed")])
def test_a_broken_connection_hands_over_what_came(end: Chunk | Exception) -> None:
    def say(nonce: str) -> Iterator[Chunk | Exception | None]:
        yield from answer(nonce, 0, b"")
        yield from answer(nonce, 1, b"first")
        yield from both(nonce, "begin 2 5.0")
        yield Chunk("out", b"half of it\nand")
        yield end
        yield None  # stderr stays open and silent

    frames, error = talk(Peer(say), [command("a"), command("b"), command("c")])
    assert isinstance(error, ConnectionLost)
    assert error.code == "connection-lost"
    assert [(frame.key, frame.state) for frame in frames[1:]] == [
        ("once: a", State.DONE),
        ("once: b", State.LOST),
    ]
    assert (frames[2].stdout, frames[2].rc, frames[2].started_s) == (b"half of it\nand", None, 5.0)


def test_what_came_whole_before_the_framing_broke_is_kept_as_it_is() -> None:
    def say(nonce: str) -> Iterator[Chunk]:
        yield from answer(nonce, 0, b"")
        begin, end, wrong = (
            f"\n{nonce} {words}\n".encode()
            for words in ("begin 1 1.0", "end 1 0 2.0 plain", "begin 7 2.0")
        )
        yield Chunk("err", begin + end)
        yield Chunk("out", begin + b"hi" + end + wrong)

    frames, error = talk(Peer(say), [command("echo", "hi"), command("echo", "more")])
    assert error is not None
    assert error.code == "protocol"
    assert [(frame.stdout, frame.rc, frame.state) for frame in frames[1:]] == [
        (b"hi", 0, State.DONE)
    ]


def test_the_deadline_ends_a_silent_host() -> None:
    def say(nonce: str) -> Iterator[Chunk | None]:
        yield from answer(nonce, 0, b"")
        yield from both(nonce, "begin 1 5.0")
        yield None

    peer = Peer(say)
    frames, error = talk(peer, [command("a")])
    assert isinstance(error, HostDeadline)
    assert peer.now == pytest.approx(100.0)
    assert frames[-1].state is State.LOST


@pytest.mark.parametrize("runs", [True, False])
def test_the_deadline_ends_a_dripping_host(runs: bool) -> None:
    def say(nonce: str) -> Iterator[Chunk]:
        if runs:
            yield from answer(nonce, 0, b"")
            yield from both(nonce, "begin 1 5.0")
        while True:
            yield Chunk("out", b".")

    peer = Peer(say, second_s=1.0)
    _, error = talk(peer, [command("a")])
    assert isinstance(error, HostDeadline)
    assert error.code == "host-deadline"
    assert ("no runner answered" in error.reason) is not runs
    assert peer.now <= 102.0


def test_the_pipes_own_error_passes_with_what_came() -> None:
    def say(nonce: str) -> Iterator[Chunk | Exception]:
        yield from answer(nonce, 0, b"")
        yield from both(nonce, "begin 1 5.0")
        yield Interrupted("interrupted", "stopped")

    frames, error = talk(Peer(say), [command("a")])
    assert isinstance(error, Interrupted)
    assert frames[-1].state is State.LOST


def test_a_peer_that_closed_its_stdin_is_heard_out() -> None:
    class Deaf(Peer):
        def send(self, data: bytes) -> None:
            super().send(data)
            raise BrokenPipeError("gone")

    said = [Chunk("err", b"account expired\n"), Chunk("err", b""), Chunk("out", b"")]
    _, error = talk(Deaf(lambda _nonce: iter(said)))
    assert isinstance(error, Unreachable)
    assert "account expired" in error.reason


def test_what_ask_raises_passes_and_the_pipe_is_closed() -> None:
    def say(nonce: str) -> Iterator[Chunk]:
        yield from answer(nonce, 0, b"")

    def ask(_subjects: Frame) -> Sequence[Request]:
        raise CommandFailed("cannot plan")

    peer = Peer(say)
    with pytest.raises(CommandFailed):
        converse(peer, SESSION, ask, lambda *_frames: None, clock=peer.clock)
    assert peer.closed


@pytest.mark.parametrize(
    ("tail", "stderr", "state", "rc"),
    [
        ("0 2.0 plain", b"", State.DONE, 0),
        ("124 11.1 plain", b"", State.TIMED_OUT, 124),
        ("137 13.0 sudo", b"", State.TIMED_OUT, 137),
        ("143 11.0 plain", b"", State.TIMED_OUT, 143),
        ("- 13.0 direct", b"", State.TIMED_OUT, None),
        ("124 2.0 plain", b"", State.DONE, 124),
        ("137 2.0 plain", b"", State.DONE, 137),
        ("- 2.0 plain", b"", State.LOST, None),
        ("- 2.0 nosudo", b"", State.SUDO_REFUSED, None),
        ("1 2.0 direct", b"sudo: a password is required\n", State.SUDO_REFUSED, 1),
        (
            "1 2.0 direct",
            b"Sorry, user ops is not allowed to execute '/usr/sbin/ethtool' as root on h.\n",
            State.SUDO_REFUSED,
            1,
        ),
        ("1 2.0 direct", b"ops is not in the sudoers file.\n", State.SUDO_REFUSED, 1),
        ("1 2.0 direct", b"ethtool: no such device\n", State.DONE, 1),
        ("1 2.0 plain", b"sudo: a password is required\n", State.DONE, 1),
        ("0 2.0 direct", b"sudo: unable to resolve host h\n", State.DONE, 0),
    ],
)
def test_how_a_command_ended(tail: str, stderr: bytes, state: State, rc: int | None) -> None:
    def say(nonce: str) -> Iterator[Chunk]:
        yield from answer(nonce, 0, b"")
        yield from both(nonce, "begin 1 1.0")
        yield Chunk("err", stderr) if stderr else Chunk("out", b"x")
        yield from both(nonce, f"end 1 {tail}")
        yield from both(nonce, "bye")

    frames, error = talk(Peer(say), [command("a", root=True)])
    assert error is None
    assert (frames[1].state, frames[1].rc) == (state, rc)


def test_a_flood_is_not_read_to_its_end() -> None:
    def say(nonce: str) -> Iterator[Chunk]:
        yield from answer(nonce, 0, b"")
        yield from both(nonce, "begin 1 1.0")
        while True:
            yield Chunk("out", b"x" * 65536)

    start = time.monotonic()
    frames, error = talk(Peer(say), [command("a", cap=1000)])
    assert error is not None
    assert error.code == "output-flood"
    assert (frames[1].stdout, frames[1].truncated) == (b"x" * 1000, True)
    assert time.monotonic() - start < 1.0


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["out", "err"]),
            st.one_of(
                st.binary(min_size=1, max_size=80),
                st.sampled_from(
                    ["begin 0 1.0", "end 0 0 1.0 plain", "begin 1 1.0", "end 1 0 2.0 sudo", "bye"]
                ),
            ),
        ),
        max_size=25,
    )
)
def test_no_peer_raises_anything_but_a_host_error(said: list[tuple[str, bytes | str]]) -> None:
    def say(nonce: str) -> Iterator[Chunk]:
        for name, what in said:
            data = what if isinstance(what, bytes) else f"\n{nonce} {what}\n".encode()
            yield Chunk("out" if name == "out" else "err", data)

    frames, _ = talk(Peer(say), [command("a", cap=50)])
    assert [frame.key for frame in frames] in ([], [SUBJECTS], [SUBJECTS, "once: a"])
    assert all(len(frame.stdout) <= 50 for frame in frames[1:])
