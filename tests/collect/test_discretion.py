"""What a login offers and asks for: no more than it was told, whatever ``~/.ssh`` holds."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from commcheck.command import Command
from commcheck.errors import Unreachable
from commcheck.model import Host
from tests.collect.test_ssh import MakeFleet, Sweep, wait_for
from tests.sshd import SshdFleet

pytestmark = pytest.mark.sshd

GREEDY = """Host *
  ForwardAgent yes
  ForwardX11 yes
  PermitLocalCommand yes
  LocalCommand touch {made}
  RemoteForward 127.0.0.1:{port} 127.0.0.1:22
  SendEnv COMMCHECK_SECRET
  SetEnv COMMCHECK_SECRET=hush
  RequestTTY force
  AddKeysToAgent yes
"""


def fingerprint(key: Path) -> str:
    words = ["ssh-keygen", "-lf", str(key)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[1]


def keygen(path: Path) -> Path:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An agent of ours with one key; its fingerprint."""
    key = keygen(tmp_path / "in-agent")
    socket = tmp_path / "agent"
    started = subprocess.run(
        ["ssh-agent", "-s", "-a", str(socket)], check=True, capture_output=True, text=True
    )
    pid = int(started.stdout.split("SSH_AGENT_PID=")[1].split(";")[0])
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)
        yield fingerprint(key)
    finally:
        os.kill(pid, signal.SIGTERM)


def without_key(fleet: SshdFleet) -> list[Host]:
    variables = fleet.variables("host-01")
    del variables["ansible_ssh_private_key_file"]
    return [Host("host-01", variables)]


@pytest.mark.slow
def test_keys_of_agent_and_home_are_offered_only_where_that_is_asked_for(
    sshd_fleet: MakeFleet, agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    at_home = fingerprint(keygen(tmp_path / ".ssh" / "id_ed25519"))
    fleet = sshd_fleet(1)
    server, known = fleet.servers[0], (fleet.known_hosts,)

    def offered(**settings: object) -> set[str]:
        before = len(server.log)
        run = Sweep(known_hosts=known, **settings)(without_key(fleet))
        assert run.codes["host-01"] == "auth-refused"
        return {each for each in (agent, at_home) if each in server.log[before:]}

    assert offered() == set()
    assert offered(agent=True) == {agent}
    assert offered(look_for_keys=True) == {at_home}


def test_nothing_but_the_way_to_a_host_is_taken_from_a_configuration(
    sshd_fleet: MakeFleet, agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No agent, port, display or variable is handed to a host, and no command is run here."""
    fleet = sshd_fleet(1, config=["AcceptEnv *", "PermitUserEnvironment yes"])
    made = tmp_path / "made"
    config = tmp_path / "config"
    config.write_text(GREEDY.format(made=made, port=fleet.servers[0].port + 1))
    monkeypatch.setenv("COMMCHECK_SECRET", "hush")
    run = Sweep(known_hosts=(fleet.known_hosts,), ssh_config=config, agent=True)(
        fleet.hosts(), Command(("env",))
    )
    assert run.codes == {"host-01": ""}
    (answer,) = run.answers("host-01")
    assert b"COMMCHECK_MARK=" in answer.stdout
    for name in (b"hush", b"SSH_AUTH_SOCK", b"DISPLAY", b"SSH_TTY"):
        assert name not in answer.stdout
    for request in ("auth-agent-req", "x11-req", "pty-req", "tcpip-forward", "Setting env"):
        assert request not in fleet.servers[0].log
    assert not made.exists()
    known = subprocess.run(["ssh-add", "-l"], check=True, capture_output=True, text=True)
    assert known.stdout.count("SHA256:") == known.stdout.count(agent) == 1


def test_a_password_goes_to_nobody_whose_key_was_not_checked(
    sshd_fleet: MakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = sshd_fleet(1, config=["PasswordAuthentication yes"])
    monkeypatch.setenv("FLEET_PASSWORD", "hush")
    (host,) = without_key(fleet)
    asks = Host(host.name, {**host.variables, "commcheck_password_env": "FLEET_PASSWORD"})
    run = Sweep(known_hosts=(fleet.known_hosts,))([asks])
    assert run.codes == {"host-01": "auth-refused"}  # offered, and wrong
    wait_for(lambda: "Failed password for root" in fleet.servers[0].log)
    run = Sweep(host_keys="insecure")([asks])
    assert isinstance(run.error, Unreachable)
    assert run.error.code == "password-unchecked"
    assert "FLEET_PASSWORD" in run.error.reason
    assert fleet.count("Failed password") == 1
