"""The small SSH server, as other clients than ours find it."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator

import paramiko
import pytest

from commcheck.demo.fleet import USER
from commcheck.inventory.endpoint import endpoint
from commcheck.inventory.load import load
from tests.cheap import Answer, CheapFleet, Script

LONG = "x" * 300_000
TALK = b"N=00ff\n"
"""What the runner is told first; its first answer is what the host is."""


@pytest.fixture(scope="module")
def fleet() -> Iterator[CheapFleet]:
    with CheapFleet(2, Script(LONG, {"true": Answer("")})) as fleet:
        yield fleet


def place(fleet: CheapFleet) -> tuple[str, int]:
    first = endpoint(load([str(fleet.inventory)], cwd=fleet.folder).hosts[0])
    return first.address, first.port or 22


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh (Debian: openssh-client)")
def test_openssh_logs_in_and_reads_a_long_answer_whole(fleet: CheapFleet) -> None:
    address, port = place(fleet)
    options = {
        "UserKnownHostsFile": fleet.known_hosts, "StrictHostKeyChecking": "yes",
        "IdentitiesOnly": "yes", "BatchMode": "yes",
    }  # fmt: skip
    words = [f"-o{name}={value}" for name, value in options.items()]
    done = subprocess.run(
        ["ssh", "-F", "none", *words, "-i", str(fleet.key), "-p", str(port),
         f"{USER}@{address}", f"head -c {len(TALK)}"],
        input=TALK + b"0\n", capture_output=True, check=False, timeout=30,
    )  # fmt: skip
    assert LONG.encode() in done.stdout, done.stderr
    assert done.stdout.endswith(b"\n00ff bye\n")


def logged_in(fleet: CheapFleet, key: paramiko.PKey) -> paramiko.Transport:
    transport = paramiko.Transport(place(fleet))
    transport.start_client(timeout=10)
    transport.auth_publickey(USER, key)
    return transport


def test_another_key_may_not_log_in(fleet: CheapFleet) -> None:
    with pytest.raises(paramiko.AuthenticationException):
        logged_in(fleet, paramiko.ECDSAKey.generate())


def test_no_more_is_said_than_the_client_has_room_for(fleet: CheapFleet) -> None:
    transport = logged_in(fleet, paramiko.PKey.from_path(fleet.key))
    channel = transport.open_session(window_size=40_000, max_packet_size=32_768)
    channel.exec_command(f"head -c {len(TALK)}")
    channel.sendall(TALK + b"0\n")
    said = b""
    while not said.endswith(b"bye\n"):
        said += channel.recv(4096)
    transport.close()
    assert LONG.encode() in said


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n\r\n" * 9, b"SSH-2.0-x\r\n\xff\xff\xff\xff", b"SSH-2.0-x\r\n" + bytes(99)],
)
def test_who_speaks_no_ssh_is_hung_up_on_and_others_are_served(
    fleet: CheapFleet, said: bytes
) -> None:
    with socket.create_connection(place(fleet), timeout=10) as sock:
        sock.sendall(said)
        while sock.recv(65536):
            pass
    logged_in(fleet, paramiko.PKey.from_path(fleet.key)).close()
