"""The peers in the race: installed into a throw-away environment, run as a user would.

Each runs the same commands on the same servers, 50 hosts at a time, once with a task a command as
its documentation has it, and once with the best bundle that one can make by hand: one task, one
shell. Ansible's tasks are ``raw``, its cheapest, with pipelining, ControlPersist and the free
strategy.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent / "race"
COMMANDS = Path(__file__).with_name("commands.txt")
FORKS = 50


@dataclass(frozen=True, slots=True)
class Place:
    """One server of the race."""

    name: str
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Entrant:
    """One way to run the commands: what is called, where, and what its output must hold."""

    name: str
    argv: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str] = field(default_factory=dict)


def install() -> Path:
    """The environment with all peers; made at the first call and kept in the temporary folder."""
    venv = Path(tempfile.gettempdir()) / "commcheck-benchmark-peers"
    done = venv / "installed"
    if not done.exists():
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "-r", str(HERE / "requirements.txt")], check=True)
        done.touch()
    return venv


def versions(venv: Path) -> dict[str, str]:
    """Of the peers."""
    argv = [str(venv / "bin" / "python"), "-m", "pip", "list", "--format", "json"]
    listed = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    wanted = ("ansible-core", "pyinfra", "parallel-ssh")
    return {each["name"]: each["version"] for each in listed if each["name"] in wanted}


def entrants(
    venv: Path, folder: Path, places: Sequence[Place], key: Path, known_hosts: Path
) -> list[Entrant]:
    """All ways of all peers; ``folder`` takes what they read."""
    bin_ = venv / "bin"
    shutil.copy(COMMANDS, folder / "commands.txt")
    for path in HERE.glob("pyinfra_*.py"):
        shutil.copy(path, folder)
    (folder / "places.txt").write_text("".join(f"{p.address} {p.port}\n" for p in places))
    (folder / "hosts.ini").write_text(
        "".join(
            f"{p.name} ansible_host={p.address} ansible_port={p.port} ansible_user=root "
            f"ansible_ssh_private_key_file={key}\n"
            for p in places
        )
    )
    data = {"ssh_user": "root", "ssh_key": str(key), "ssh_known_hosts_file": str(known_hosts)}
    hosts = [(p.name, {**data, "ssh_hostname": p.address, "ssh_port": p.port}) for p in places]
    (folder / "inventory.py").write_text(f"hosts = {hosts!r}\n")
    commands = COMMANDS.read_text().splitlines()
    for name, tasks in (("single", commands), ("bundle", ["; ".join(commands)])):
        play = {
            "hosts": "all",
            "gather_facts": False,
            "strategy": "free",
            "tasks": [{"name": each, "ansible.builtin.raw": each} for each in tasks],
        }
        (folder / f"{name}.json").write_text(json.dumps([play]))
    ansible = {
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_FORKS": str(FORKS),
        "ANSIBLE_LOCAL_TEMP": str(folder / "ansible"),
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=60s "
        f"-o UserKnownHostsFile={known_hosts}",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
    }
    made = []
    for way in ("single", "bundle"):
        play_argv = (str(bin_ / "ansible-playbook"), "-i", "hosts.ini", f"{way}.json")
        pyinfra = (str(bin_ / "pyinfra"), "-y", "--parallel", str(FORKS), "inventory.py")
        pssh = (str(bin_ / "python"), str(HERE / "pssh_race.py"), "places.txt", str(key))
        made += [
            Entrant(f"ansible-core, {way}", play_argv, folder, ansible),
            Entrant(f"pyinfra, {way}", (*pyinfra, f"pyinfra_{way}.py"), folder),
            Entrant(f"parallel-ssh, {way}", (*pssh, "commands.txt", way), folder),
        ]
    return made
