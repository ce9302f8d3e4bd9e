"""The server of a simulated host: loopback only, one key, commands only, nothing left behind."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from commcheck.demo.server import ADDRESS, HostServer

KEY, OTHER = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HostServer]:
    made = HostServer(OTHER, KEY, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    yield made
    made.close()


@pytest.fixture
def client(server: HostServer) -> Iterator[paramiko.Transport]:
    transport = paramiko.Transport(socket.create_connection((ADDRESS, server.port)))
    transport.start_client(timeout=10)
    transport.auth_publickey("anybody", KEY)
    yield transport
    transport.close()


def run(client: paramiko.Transport, command: str) -> tuple[bytes, bytes, int]:
    channel = client.open_session(timeout=10)
    channel.settimeout(10)
    channel.exec_command(command)
    out, err = channel.makefile("rb").read(), channel.makefile_stderr("rb").read()
    return out, err, channel.recv_exit_status()


def test_a_command_is_really_run_and_its_end_is_told(client: paramiko.Transport) -> None:
    assert run(client, "echo out; echo err >&2; exit 7") == (b"out\n", b"err\n", 7)
    assert run(client, "kill -KILL $$")[2] == 128 + 9


def test_a_command_gets_nothing_of_our_environment(
    client: paramiko.Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    out, _, _ = run(client, "env")
    assert b"s3cret" not in out
    assert b"SSH_CONNECTION=127.0.0.1 " in out


def test_only_the_key_of_this_run_may_log_in(server: HostServer) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port))
    transport = paramiko.Transport(socket.create_connection((ADDRESS, server.port)))
    transport.start_client(timeout=10)
    assert transport.get_remote_server_key() == OTHER
    with pytest.raises(paramiko.AuthenticationException):
        transport.auth_publickey("anybody", OTHER)
    with pytest.raises(paramiko.AuthenticationException):
        transport.auth_password("anybody", "")
    transport.close()


def test_there_is_no_shell_and_no_forwarding(client: paramiko.Transport) -> None:
    with pytest.raises(paramiko.SSHException):
        client.open_session(timeout=10).invoke_shell()
    with pytest.raises(paramiko.ChannelException):
        client.open_channel("direct-tcpip", (ADDRESS, 1), (ADDRESS, 1), timeout=10)


def test_what_ignores_the_clients_end_is_killed_with_the_server(
    server: HostServer, client: paramiko.Transport, tmp_path: Path
) -> None:
    channel = client.open_session(timeout=10)
    channel.exec_command(f"trap '' TERM HUP; echo $$ >{tmp_path}/pid; exec sleep 600")
    ends = time.monotonic() + 10
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < ends
        time.sleep(0.02)
    pid = int((tmp_path / "pid").read_text())
    server.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((ADDRESS, server.port), timeout=2)
