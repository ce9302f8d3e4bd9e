"""The byte stream under an SSH connection."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from commcheck.collect import wires
from commcheck.collect.wires import Buffered


def test_bites_come_in_order_and_none_is_lost() -> None:
    here, there = socket.socketpair()
    with there:
        sock = Buffered(here)
        there.sendall(bytes(range(256)) * 300)
        there.shutdown(socket.SHUT_WR)
        got = b""
        for size in (1, 5, 16, 4096, 65536):
            bite = sock.recv(size)
            assert 0 < len(bite) <= size
            got += bite
        while bite := sock.recv(1000):
            got += bite
        assert got == bytes(range(256)) * 300
        assert sock.recv(1) == b""
        sock.close()
        assert sock._closed


def test_a_time_out_takes_nothing_away() -> None:
    here, there = socket.socketpair()
    with there:
        sock = Buffered(here)
        sock.settimeout(0.01)
        with pytest.raises(TimeoutError):
            sock.recv(4)
        there.sendall(b"abcdef")
        assert (sock.recv(4), sock.recv(4)) == (b"abcd", b"ef")
        assert sock.send(b"x") == 1
        sock.close()


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Buffered, socket.socket]]:
    """A TCP connection: one end as the SSH library has it, gathering, and the other."""
    monkeypatch.setattr(wires, "GATHER_S", 1.0)  # a busy machine is late by far less
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    wire = Buffered(near)
    wire.settimeout(0.1)
    wire.gather()
    with far:
        far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield wire, far
    wire.close()


def pieces(far: socket.socket, *data: bytes, apart_s: float) -> threading.Thread:
    def send() -> None:
        for each in data:
            time.sleep(apart_s)
            far.sendall(each)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def rest(wire: Buffered) -> None:
    """Wait until it has found nothing, and so rests."""
    with pytest.raises(TimeoutError):
        wire.recv(1)


def test_what_follows_closely_is_read_together(ends: tuple[Buffered, socket.socket]) -> None:
    wire, far = ends
    sender = pieces(far, *[b"x"] * 5, apart_s=0.02)
    assert wire.recv(100) == b"xxxxx"
    sender.join()


def test_much_is_not_waited_for(ends: tuple[Buffered, socket.socket]) -> None:
    wire, far = ends
    began = time.monotonic()
    sender = pieces(far, bytes(2_000_000), apart_s=0)
    left = 2_000_000
    while left > 100_000:
        left -= len(wire.recv(65536))
    assert time.monotonic() - began < 10.0  # 60 reads, each with a wait, would take 60 s
    while left:
        left -= len(wire.recv(65536))
    sender.join()


def test_after_a_silence_the_first_bytes_are_read_at_once(
    ends: tuple[Buffered, socket.socket],
) -> None:
    wire, far = ends
    rest(wire)
    began = time.monotonic()
    sender = pieces(far, b"a", *[b"x"] * 5, apart_s=0.05)
    first = wire.recv(100)
    assert time.monotonic() - began < 0.8
    assert first + wire.recv(100) == b"axxxxx"
    sender.join()


@pytest.mark.parametrize("resting", [False, True])
def test_an_end_is_seen_at_once(ends: tuple[Buffered, socket.socket], *, resting: bool) -> None:
    wire, far = ends
    if resting:
        rest(wire)
    far.sendall(b"last")
    far.shutdown(socket.SHUT_WR)
    began = time.monotonic()
    assert (wire.recv(100), wire.recv(100)) == (b"last", b"")
    assert time.monotonic() - began < 0.8


@pytest.mark.parametrize("resting", [False, True])
def test_closing_ends_a_read_at_once(
    ends: tuple[Buffered, socket.socket], *, resting: bool
) -> None:
    wire, _ = ends
    if resting:
        rest(wire)
    closer = threading.Timer(0.05, wire.close)
    closer.start()
    began = time.monotonic()
    with contextlib.suppress(OSError):  # which of the two depends on where the reader was
        assert wire.recv(1) == b""
    assert time.monotonic() - began < 0.8
    closer.join()
