"""The byte stream under an SSH connection."""

from __future__ import annotations

import socket

import pytest

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
