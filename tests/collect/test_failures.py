"""Every way in which a connection fails has its own code, words and remedy."""

from __future__ import annotations

import errno
import socket

import pytest
from paramiko import ssh_exception as ssh

from commcheck.collect.failures import Moment, Peer, Stage, explain, unforeseen
from commcheck.errors import ConnectionLost, HostError, Unreachable

PEER = Peer("10.0.0.1", 2222, "ops", "jump.example:22")


def os_error(number: int) -> OSError:
    return OSError(number, "words of the system")


@pytest.mark.parametrize(
    ("stage", "error", "elapsed", "code"),
    [
        (Stage.RESOLVE, socket.gaierror(-2, "Name or service not known"), 0.0, "dns"),
        (Stage.RESOLVE, TimeoutError(), 10.0, "dns"),
        (Stage.TCP, os_error(errno.ECONNREFUSED), 0.0, "tcp-refused"),
        (Stage.TCP, os_error(errno.ECONNRESET), 0.0, "tcp-refused"),
        (Stage.TCP, TimeoutError("timed out"), 10.0, "tcp-timeout"),
        (Stage.TCP, os_error(errno.ETIMEDOUT), 3.0, "tcp-timeout"),
        (Stage.TCP, os_error(errno.EHOSTUNREACH), 3.0, "tcp-unreachable"),
        (Stage.TCP, os_error(errno.ENETUNREACH), 0.0, "tcp-unreachable"),
        (
            Stage.FORWARD,
            ssh.ChannelException(1, "Administratively prohibited"),
            0.0,
            "channel-refused",
        ),
        (Stage.FORWARD, ssh.ChannelException(2, "Connect failed"), 0.0, "tcp-refused"),
        (Stage.FORWARD, ssh.SSHException("Timeout opening channel."), 10.1, "tcp-timeout"),
        (Stage.FORWARD, EOFError(), 0.1, "connection-lost"),
        (Stage.BANNER, ssh.SSHException("No existing session"), 10.0, "banner-timeout"),
        (
            Stage.BANNER,
            ssh.SSHException("Error reading SSH protocol banner"),
            0.0,
            "dropped-before-banner",
        ),
        (Stage.BANNER, os_error(errno.ECONNRESET), 0.0, "dropped-before-banner"),
        (Stage.BANNER, EOFError(), 0.3, "dropped-before-banner"),
        (Stage.BANNER, ssh.SSHException('Indecipherable protocol version "HTTP"'), 0.3, "not-ssh"),
        (Stage.HANDSHAKE, ssh.SSHException("No existing session"), 10.0, "handshake-timeout"),
        (Stage.HANDSHAKE, EOFError(), 0.1, "connection-lost"),
        (Stage.HANDSHAKE, os_error(errno.ECONNRESET), 0.1, "connection-lost"),
        (
            Stage.HANDSHAKE,
            ssh.IncompatiblePeer("no acceptable kex algorithm"),
            0.1,
            "unsupported-ssh-algorithms",
        ),
        (
            Stage.HANDSHAKE,
            ssh.SSHException("Signature verification failed"),
            0.1,
            "handshake-failed",
        ),
        (Stage.HANDSHAKE, ValueError("not on the curve"), 0.1, "handshake-failed"),
        (Stage.AUTH, ssh.AuthenticationException("Authentication failed."), 0.4, "auth-refused"),
        (Stage.AUTH, ssh.BadAuthenticationType("Bad type", ["publickey"]), 0.4, "auth-refused"),
        (Stage.AUTH, ssh.SSHException("No authentication methods available"), 0.0, "auth-refused"),
        (Stage.AUTH, ssh.AuthenticationException("Authentication timeout."), 10.0, "auth-timeout"),
        (Stage.AUTH, EOFError(), 0.1, "connection-lost"),
        (
            Stage.AUTH,
            ssh.AuthenticationException("Authentication failed: transport shut down or saw EOF"),
            0.1,
            "connection-lost",
        ),
        (Stage.CHANNEL, ssh.ChannelException(2, "Connect failed"), 0.0, "channel-refused"),
        (Stage.CHANNEL, ssh.SSHException("Timeout opening channel."), 10.0, "channel-refused"),
        (Stage.CHANNEL, os_error(errno.ECONNRESET), 0.1, "connection-lost"),
        (Stage.EXEC, ssh.SSHException("Channel closed."), 0.1, "no-runner"),
        (Stage.EXEC, EOFError(), 0.1, "connection-lost"),
        (Stage.TALK, EOFError(), 0.1, "connection-lost"),
        (Stage.TALK, ssh.SSHException("oops"), 0.1, "connection-lost"),
    ],
)
def test_codes(stage: Stage, error: Exception, elapsed: float, code: str) -> None:
    found = explain(error, Moment(stage, elapsed, 10.0), PEER)
    assert found.code == code
    assert "10.0.0.1" in found.reason
    assert found.remedy
    assert found.__cause__ is error
    assert isinstance(found, ConnectionLost if stage is Stage.TALK else Unreachable)
    assert "No existing session" not in found.reason


def test_what_was_explained_before_stays() -> None:
    known = HostError("host-key-changed", "r")
    assert explain(known, Moment(Stage.AUTH, 0, 1), PEER) is known


@pytest.mark.parametrize("stage", Stage)
def test_nothing_leaves_without_words(stage: Stage) -> None:
    for error in (Exception(), EOFError(), OSError(), ssh.SSHException("a\nb\x1b[31m" + "x" * 999)):
        found = explain(error, Moment(stage, 0.0, 10.0), PEER)
        assert found.reason.strip() == found.reason
        assert "\n" not in found.reason
        assert len(found.reason) < 500


def test_names_in_remedies_are_quoted() -> None:
    peer = Peer("a; rm -rf /", 22, "u")
    found = explain(os_error(errno.ETIMEDOUT), Moment(Stage.TCP, 9, 9), peer)
    assert "'a; rm -rf /'" in found.remedy


@pytest.mark.parametrize("stage", list(Stage))
@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        RuntimeError("can't allocate read lock"),
        SystemError("error return without exception set"),
    ],
)
def test_what_this_machine_lacks_is_blamed_on_no_host(stage: Stage, error: Exception) -> None:
    told = explain(error, Moment(stage, 0.1, 10.0), PEER)
    assert told.code == "out-of-resources"
    assert "this machine, not the host" in told.reason


def test_where_nobody_foresaw_it_is_told_without_reading_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With no memory left, Python's own way to a line of source ends in a second failure."""

    def refuse(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("linecache.updatecache", refuse)
    try:
        raise KeyError("missing")
    except KeyError as error:
        found = unforeseen(error)
    assert found.code == "bug"
    assert "KeyError: 'missing' (" in found.reason
    assert "test_failures.py:" in found.reason
    assert unforeseen(MemoryError()).code == "out-of-resources"
