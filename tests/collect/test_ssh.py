"""The SSH transport against real sshd processes on loopback."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from commcheck.collect.base import SUBJECTS, Frame, Frames, Request, State
from commcheck.collect.fleet import visit_all
from commcheck.collect.ssh import SshSettings, SshVisitor
from commcheck.command import Command
from commcheck.errors import HostError
from commcheck.model import Host
from tests.sshd import SshdFleet, descendants, free_port, marked, odd_server, send_signal

pytestmark = pytest.mark.sshd

MakeFleet = Callable[..., SshdFleet]
AUTH = "userauth-request"
CHANNEL = "server_input_channel_open: ctype session"
EXEC = "Starting session: command for"


class Sweep:
    """One run over hosts, with what it told."""

    def __init__(self, **settings: object) -> None:
        self.run_id = f"t{secrets.token_hex(4)}"
        self.notes: list[str] = []
        self.started: list[str] = []
        self.errors: dict[str, HostError | None] = {}
        self.frames: dict[str, Frames] = {}
        self.stop = threading.Event()
        settings = {"ssh_config": Path("/dev/null"), "connect_timeout_s": 5.0, **settings}
        self.visitor = SshVisitor(
            SshSettings(run_id=self.run_id, note=self.notes.append, **settings)  # type: ignore[arg-type] # passed on
        )

    def __call__(self, hosts: Sequence[Host], *commands: Command, forks: int = 8) -> Sweep:
        requests = [Request(each) for each in commands]
        try:
            visit_all(
                hosts,
                lambda _host: self.visitor,
                lambda _host: lambda _subjects: requests,
                lambda host: self.frames.setdefault(host.name, Frames()),
                forks=forks,
                started=lambda host: self.started.append(host.name),
                done=lambda host, error: self.errors.update({host.name: error}),
                stop=self.stop,
            )
        finally:
            self.visitor.close()
        return self

    @property
    def codes(self) -> dict[str, str]:
        return {name: error.code if error else "" for name, error in self.errors.items()}

    @property
    def error(self) -> HostError:
        """The error of the one host of the run that had one."""
        (error,) = [each for each in self.errors.values() if each is not None]
        return error

    def answers(self, name: str) -> list[Frame]:
        return [each for each in self.frames[name] if each.key != SUBJECTS]


def sweep(fleet: SshdFleet, *commands: Command, **settings: object) -> Sweep:
    """A run over all hosts of a fleet, which must not fail."""
    run = Sweep(**{"known_hosts": (fleet.known_hosts,), **settings})(fleet.hosts(), *commands)
    assert {name: repr(error) for name, error in run.errors.items()} == dict.fromkeys(
        fleet.names, "None"
    )
    return run


def gone(mark: str, within_s: float) -> float:
    """Seconds until no process carries the mark. Fails after ``within_s``."""
    began = time.monotonic()
    while left := marked(mark):
        assert time.monotonic() - began < within_s, left
        time.sleep(0.05)
    return time.monotonic() - began


def wait_for(true: Callable[[], object], limit_s: float = 10.0) -> None:
    ends = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.02)


HELLO = Command(("hello", "a b", "$HOME;'x"))


# --- a plain run --------------------------------------------------------------------------------


def test_eight_hosts_one_channel_and_one_exec_each(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(8)
    fleet.tool("hello", 'printf "%s\\n" "$@"; echo oops >&2; exit 3')
    fleet.hosts_by_name["host-05"].tool("hello", "echo five")
    run = sweep(fleet, HELLO, Command(("true",)))
    assert run.started == fleet.names
    for name in fleet.names:
        hello, true = run.answers(name)
        if name != "host-05":
            assert (hello.stdout, hello.stderr, hello.rc) == (b"a b\n$HOME;'x\n", b"oops\n", 3)
        else:
            assert hello.stdout == b"five\n"
        assert true.rc == 0
    for server in fleet.servers:
        assert server.log.count(CHANNEL) == 1
        assert server.log.count(EXEC) == 1
        assert "aes128-gcm@openssh.com" in server.log
    end = time.monotonic() + 4
    while marked(run.run_id) and time.monotonic() < end:
        time.sleep(0.05)
    assert marked(run.run_id) == []


@pytest.mark.parametrize("shell", ["/bin/dash", "/bin/bash", "/bin/csh", "/bin/rbash"])
def test_login_shells(sshd_fleet: MakeFleet, shell: str) -> None:
    if not os.access(shell, os.X_OK):
        pytest.skip(f"no {shell}")
    fleet = sshd_fleet(1, shell=shell, user="tester")
    fleet.tool("hello", 'printf "%s\\n" "$@"')
    # Nothing that a login shell says of itself may be taken for an answer.
    (fleet.servers[0].folder / "home" / ".cshrc").write_text("echo hello from csh\n")
    (frame,) = sweep(fleet, HELLO).answers("host-01")
    assert frame.stdout == b"a b\n$HOME;'x\n"


def test_without_sudo_a_root_command_is_refused_and_the_rest_runs(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(1, user="tester")
    fleet.tool("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    refused, done = sweep(fleet, Command(("id", "-u"), root=True), Command(("id", "-u"))).answers(
        "host-01"
    )
    assert refused.state is State.SUDO_REFUSED
    assert done.stdout == b"54321\n"


def test_no_shell_is_no_runner(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(
        1, config=["ForceCommand echo go away: this account runs no commands at all, ask ops"]
    )
    run = Sweep(known_hosts=(fleet.known_hosts,))(fleet.hosts(), HELLO)
    assert run.error.code == "no-runner"
    assert "go away" in run.error.reason


def test_output_that_is_not_utf8_arrives_as_it_is(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(1)
    fleet.tool("odd", r"printf 'a\377\000\303\n\033[31m\r\n'; printf '\200' >&2")
    (frame,) = sweep(fleet, Command(("odd",))).answers("host-01")
    assert frame.stdout == b"a\xff\x00\xc3\n\x1b[31m\r\n"
    assert frame.stderr == b"\x80"


def test_a_flood_of_100_mb_is_cut_on_the_host(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(1)
    flood = Command(("head", "-c", "100000000", "/dev/zero"), timeout_s=20, cap_bytes=1 << 20)
    both = Command(("sh", "-c", "head -c 900000 /dev/zero; head -c 900000 /dev/zero >&2"))
    cut, whole = sweep(fleet, flood, both).answers("host-01")
    assert cut.truncated
    assert len(cut.stdout) == 1 << 20
    assert (len(whole.stdout), len(whole.stderr), whole.truncated) == (900000, 900000, False)


def test_a_command_that_ignores_term_is_killed_and_the_rest_runs(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(1)
    fleet.tool("deaf", "trap '' TERM INT HUP; while :; do sleep 30; done")
    run = sweep(fleet, Command(("deaf",), timeout_s=1), Command(("echo", "after")))
    deaf, after = run.answers("host-01")
    assert deaf.state is State.TIMED_OUT
    assert after.stdout == b"after\n"
    assert marked(run.run_id) == []


def test_max_sessions_1(sshd_fleet: MakeFleet) -> None:
    sweep(sshd_fleet(2, config=["MaxSessions 1"]), Command(("true",)), Command(("true",)))


def test_max_sessions_0_is_channel_refused(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(1, config=["MaxSessions 0"])
    run = Sweep(known_hosts=(fleet.known_hosts,))(fleet.hosts(), HELLO)
    assert run.error.code == "channel-refused"


@pytest.mark.slow
def test_64_hosts_behind_max_startups(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(64, servers=1, config=["MaxStartups 10:30:60"])
    run = Sweep(known_hosts=(fleet.known_hosts,), retries=6)(
        fleet.hosts(), Command(("true",)), forks=64
    )
    assert set(run.codes.values()) == {""}
    assert len(run.codes) == 64
    assert fleet.servers[0].log.count(EXEC) == 64


def test_importing_the_transport_does_not_import_the_library() -> None:
    code = "import sys, commcheck.collect.ssh; print({'fabric', 'paramiko'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# --- host keys ----------------------------------------------------------------------------------


def test_strict_refuses_what_it_does_not_know_before_the_login(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(2)
    fleet.known_hosts.write_text(fleet.servers[0].known_hosts_line())
    run = Sweep(known_hosts=(fleet.known_hosts,))(fleet.hosts(), HELLO)
    assert run.codes == {"host-01": "", "host-02": "host-key-unknown"}
    assert fleet.servers[1].fingerprint() in run.error.reason
    assert AUTH in fleet.servers[0].log
    assert AUTH not in fleet.servers[1].log
    assert fleet.known_hosts.read_text() == fleet.servers[0].known_hosts_line()  # nothing added


@pytest.mark.parametrize("mode", ["strict", "accept-new", "pinned"])
def test_a_changed_key_is_refused_before_the_login(sshd_fleet: MakeFleet, mode: str) -> None:
    fleet = sshd_fleet(1)
    server = fleet.servers[0]
    host = Host(
        "host-01", {**fleet.variables("host-01"), "commcheck_host_key": server.fingerprint()}
    )
    old = server.fingerprint()
    fleet.kill(server)
    fleet.start(server)
    run = Sweep(known_hosts=(fleet.known_hosts,), host_keys=mode)([host], HELLO)
    assert run.codes == {"host-01": "host-key-changed"}
    assert old in run.error.reason
    assert server.fingerprint() in run.error.reason
    assert AUTH not in server.log
    assert fleet.known_hosts.read_text().count("\n") == 1


def test_accept_new_then_strict(sshd_fleet: MakeFleet, tmp_path: Path) -> None:
    fleet = sshd_fleet(4)
    file = tmp_path / "accepted"
    run = sweep(fleet, Command(("true",)), known_hosts=(file,), host_keys="accept-new")
    assert len(run.notes) == 4
    for server in fleet.servers:
        assert any(server.fingerprint() in note for note in run.notes)
    again = sweep(fleet, Command(("true",)), known_hosts=(file,), host_keys="strict")
    assert again.notes == []


def test_pinned(sshd_fleet: MakeFleet, tmp_path: Path) -> None:
    fleet = sshd_fleet(1)
    pin = {"commcheck_host_key": fleet.servers[0].fingerprint()}
    host = Host("host-01", {**fleet.variables("host-01"), **pin})
    none = (tmp_path / "none",)
    assert Sweep(known_hosts=none, host_keys="pinned")([host]).codes == {"host-01": ""}
    another = {"commcheck_host_key": f"SHA256:{'A' * 43}"}
    wrong = Host("host-01", {**fleet.variables("host-01"), **another})
    run = Sweep(known_hosts=(fleet.known_hosts,), host_keys="pinned")([wrong])
    assert run.codes == {"host-01": "host-key-changed"}
    # Without a pin there is nothing to trust, whatever the files know.
    run = Sweep(known_hosts=(fleet.known_hosts,), host_keys="pinned")(fleet.hosts())
    assert run.codes == {"host-01": "host-key-unknown"}


def test_insecure_connects_and_says_so(sshd_fleet: MakeFleet, tmp_path: Path) -> None:
    run = sweep(sshd_fleet(1), known_hosts=(tmp_path / "none",), host_keys="insecure")
    assert "not checked" in run.notes[0]


def test_the_known_key_is_asked_for_where_a_host_has_several(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(1, key_types=("rsa", "ecdsa", "ed25519"))
    for kind in ("rsa", "ecdsa", "ed25519"):
        fleet.known_hosts.write_text(fleet.servers[0].known_hosts_line(kind))
        sweep(fleet)
    other = fleet.known_hosts
    fleet.kill(fleet.servers[0])
    fleet._key_types = ("ecdsa",)
    fleet.start(fleet.servers[0])
    run = Sweep(known_hosts=(other,))(fleet.hosts())
    assert run.error.code == "host-key-type-changed"


# --- jump hosts ---------------------------------------------------------------------------------


def behind(fleet: SshdFleet, jump: SshdFleet) -> list[Host]:
    server = jump.servers[0]
    way = f"-o ProxyJump=root@{server.address}:{server.port}"
    return [
        Host(name, {**fleet.variables(name), "ansible_ssh_common_args": way})
        for name in fleet.names
    ]


def known_both(*fleets: SshdFleet, folder: Path) -> tuple[Path, ...]:
    for other in fleets[1:]:
        # The jump host takes the hosts' key.
        (other.folder / "authorized_keys").write_text(
            (fleets[0].folder / "authorized_keys").read_text()
        )
    path = folder / "known_both"
    path.write_text("".join(each.known_hosts.read_text() for each in fleets))
    return (path,)


def test_32_hosts_through_one_jump_host(sshd_fleet: MakeFleet, tmp_path: Path) -> None:
    fleet = sshd_fleet(32, servers=4)
    jump = sshd_fleet(1, prefix="jump", net=1, config=["MaxStartups 10:30:60", "MaxSessions 1"])
    known = known_both(fleet, jump, folder=tmp_path)
    run = Sweep(known_hosts=known)(behind(fleet, jump), Command(("true",)), forks=32)
    assert set(run.codes.values()) == {""}
    assert run.started == fleet.names
    assert jump.servers[0].log.count("Accepted publickey") == 1
    assert EXEC not in jump.servers[0].log
    assert fleet.log.count(EXEC) == 32


def test_the_jump_host_is_checked_before_the_login_too(
    sshd_fleet: MakeFleet, tmp_path: Path
) -> None:
    fleet = sshd_fleet(3)
    jump = sshd_fleet(1, prefix="jump", net=1)
    known_both(fleet, jump, folder=tmp_path)
    run = Sweep(known_hosts=(fleet.known_hosts,))(behind(fleet, jump), Command(("true",)))
    assert set(run.codes.values()) == {"host-key-unknown"}
    assert "jump host" in str(run.errors["host-01"])
    assert AUTH not in jump.servers[0].log
    # One try for all three.
    assert jump.servers[0].log.count("Connection from") <= 2
    assert AUTH not in fleet.log


def test_a_refused_port_behind_the_jump_host(sshd_fleet: MakeFleet, tmp_path: Path) -> None:
    fleet = sshd_fleet(2)
    jump = sshd_fleet(1, prefix="jump", net=1)
    known = known_both(fleet, jump, folder=tmp_path)
    fleet.kill(fleet.servers[0])
    run = Sweep(known_hosts=known)(behind(fleet, jump), Command(("true",)))
    assert run.codes == {"host-01": "tcp-refused", "host-02": ""}
    assert "jump host" in run.error.reason


def test_a_jump_host_that_cuts_us_off_is_opened_again(
    sshd_fleet: MakeFleet, tmp_path: Path
) -> None:
    fleet = sshd_fleet(3)
    jump = sshd_fleet(1, prefix="jump", net=1)
    run = Sweep(known_hosts=known_both(fleet, jump, folder=tmp_path))
    for host in behind(fleet, jump):
        run.visitor.visit(host, lambda _: [], lambda *_: None)
        send_signal(descendants(jump.servers[0].pid), signal.SIGKILL)
    run.visitor.close()
    assert jump.servers[0].log.count("Accepted publickey") == 3


def test_ssh_config_names_jump_host_and_key(sshd_fleet: MakeFleet, tmp_path: Path) -> None:
    fleet = sshd_fleet(1)
    jump = sshd_fleet(1, prefix="jump", net=1)
    known = known_both(fleet, jump, folder=tmp_path)
    server, hop = fleet.servers[0], jump.servers[0]
    config = tmp_path / "config"
    config.write_text(
        f"Host gpu\n HostName {server.address}\n Port {server.port}\n ProxyJump hop\n"
        f"Host hop\n HostName {hop.address}\n Port {hop.port}\n"
        f"Host *\n User root\n IdentityFile {fleet.key}\n UserKnownHostsFile {known[0]}\n"
    )
    run = Sweep(ssh_config=config)([Host("gpu")], Command(("true",)))
    assert run.codes == {"gpu": ""}
    assert "Accepted publickey" in hop.log


def test_proxy_command_through_openssh(sshd_fleet: MakeFleet, tmp_path: Path) -> None:
    fleet = sshd_fleet(1)
    jump = sshd_fleet(1, prefix="jump", net=1)
    known = known_both(fleet, jump, folder=tmp_path)
    hop = jump.servers[0]
    command = (
        f"ssh -F /dev/null -i {fleet.key} -o UserKnownHostsFile={known[0]} -o BatchMode=yes "
        f"-p {hop.port} -W %h:%p root@{hop.address}"
    )
    args = {"ansible_ssh_common_args": f"-o 'ProxyCommand={command}'"}
    host = Host("host-01", {**fleet.variables("host-01"), **args})
    assert Sweep(known_hosts=known)([host], Command(("true",))).codes == {"host-01": ""}
    bad = {"ansible_ssh_common_args": "-o 'ProxyCommand=cat /no/way'"}
    host = Host("host-01", {**fleet.variables("host-01"), **bad})
    run = Sweep(known_hosts=known, retries=0)([host], Command(("true",)))
    assert run.error.code == "dropped-before-banner"
    assert "cat: /no/way: No such file" in run.error.reason


# --- what does not work -------------------------------------------------------------------------


def at(name: str, address: str, port: int, fleet: SshdFleet) -> Host:
    return Host(name, {**fleet.variables("host-01"), "ansible_host": address, "ansible_port": port})


def test_refused_unknown_and_not_let_in(sshd_fleet: MakeFleet, tmp_path: Path) -> None:
    fleet = sshd_fleet(2)
    (fleet.folder / "other_key").write_bytes(b"no key")
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "stranger")],
        check=True,
    )
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(tmp_path / "locked")],
        check=True,
    )

    os.mkfifo(tmp_path / "pipe")

    def with_key(name: str, key: Path | None) -> Host:
        variables = {**fleet.variables("host-01"), "ansible_ssh_private_key_file": str(key or "")}
        return Host(name, variables)

    hosts = [
        at("refused", "127.0.0.1", free_port(), fleet),
        at("no-name", "no-such-host.invalid", 22, fleet),
        with_key("stranger", tmp_path / "stranger"),
        with_key("locked", tmp_path / "locked"),
        with_key("garbage", fleet.folder / "other_key"),
        with_key("missing", tmp_path / "missing"),
        with_key("pipe", tmp_path / "pipe"),
        with_key("nothing", None),
        fleet.hosts()[1],
    ]
    run = Sweep(known_hosts=(fleet.known_hosts,))(hosts, Command(("true",)))
    assert run.codes == {
        "refused": "tcp-refused",
        "no-name": "dns",
        "stranger": "auth-refused",
        "locked": "key-unreadable",
        "garbage": "key-unreadable",
        "missing": "key-unreadable",
        "pipe": "key-unreadable",
        "nothing": "auth-refused",
        "host-02": "",
    }


def test_no_algorithm_in_common(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(1, config=["Ciphers chacha20-poly1305@openssh.com"])
    run = Sweep(known_hosts=(fleet.known_hosts,))(fleet.hosts())
    assert run.error.code == "unsupported-ssh-algorithms"


def test_a_server_without_gcm(sshd_fleet: MakeFleet) -> None:
    sweep(sshd_fleet(1, config=["Ciphers aes256-ctr"]))


@pytest.mark.parametrize(
    ("answer", "every_s", "hang_up", "code"),
    [
        (b"", 0.0, False, "banner-timeout"),
        (b"hello?\r\n", 0.2, False, "banner-timeout"),
        (b"S", 0.2, False, "banner-timeout"),
        (b"SSH-2.0-stuck\r\n", 0.0, False, "handshake-timeout"),
        (b"", 0.0, True, "dropped-before-banner"),
        (b"Exceeded MaxStartups\r\n", 0.0, True, "dropped-before-banner"),
        (b"HTTP/1.1 400 Bad Request\r\n" * 101, 0.0, False, "not-ssh"),
    ],
)
def test_servers_that_are_none(
    tmp_path: Path, answer: bytes, every_s: float, hang_up: bool, code: str
) -> None:
    with odd_server(answer, every_s=every_s, hang_up=hang_up) as port:
        host = Host("odd", {"ansible_host": "127.0.0.1", "ansible_port": port})
        began = time.monotonic()
        run = Sweep(connect_timeout_s=1.0, retries=0, known_hosts=(tmp_path / "none",))([host])
        assert time.monotonic() - began < 1.0 + 2
    assert run.codes == {"odd": code}


def test_bad_servers_cost_no_more_than_the_host_deadline(tmp_path: Path) -> None:
    with odd_server() as silent, odd_server(b"drip\r\n", every_s=0.1) as dripping:
        hosts = [
            Host(f"odd-{port}", {"ansible_host": "127.0.0.1", "ansible_port": port})
            for port in (silent, dripping)
        ]
        began = time.monotonic()
        run = Sweep(connect_timeout_s=60.0, host_deadline_s=1.0, known_hosts=(tmp_path / "none",))
        run(hosts)
        assert time.monotonic() - began < 1.0 + 2
    assert set(run.codes.values()) == {"host-deadline"}


def test_a_host_that_freezes_costs_its_deadline_and_keeps_its_answers(
    sshd_fleet: MakeFleet,
) -> None:
    fleet = sshd_fleet(1)
    # The connection's own sshd, parent of the runner's shell, stops dead.
    fleet.tool(
        "freeze",
        "p=$$; while :; do read -r x </proc/$p/stat; set -- ${x##*)}; p=$2; "
        'read -r c </proc/$p/comm; [ "$c" = sshd ] && break; done; kill -STOP $p; sleep 60',
    )
    began = time.monotonic()
    run = Sweep(known_hosts=(fleet.known_hosts,), host_deadline_s=2.0)(
        fleet.hosts(), Command(("echo", "before")), Command(("freeze",)), Command(("true",))
    )
    assert time.monotonic() - began < 2.0 + 2
    assert run.codes == {"host-01": "host-deadline"}
    assert run.answers("host-01")[0].stdout == b"before\n"


def test_a_connection_that_breaks_keeps_its_answers(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(1)
    run = Sweep(known_hosts=(fleet.known_hosts,))
    thread = threading.Thread(
        target=run,
        args=(fleet.hosts(), Command(("echo", "before")), Command(("sleep", "60"), timeout_s=70)),
    )
    thread.start()
    wait_for(lambda: len(run.frames.get("host-01", [])) == 2)
    time.sleep(0.3)
    fleet.kill(fleet.servers[0])
    thread.join(10)
    assert run.codes == {"host-01": "connection-lost"}
    before, lost = run.answers("host-01")
    assert (before.state, lost.state) == (State.DONE, State.LOST)


# --- nothing is left behind ---------------------------------------------------------------------


@pytest.mark.parametrize("processes", [1, 6, 9, 12])  # from the first shell to all commands
def test_stop_ends_everything_within_five_seconds(
    sshd_fleet: MakeFleet, tmp_path: Path, processes: int
) -> None:
    fleet = sshd_fleet(4)
    jump = sshd_fleet(1, prefix="jump", net=1)
    known = known_both(fleet, jump, folder=tmp_path)
    fleet.tool("deaf", "trap '' TERM; echo up >&2; while :; do sleep 30; done")
    run = Sweep(known_hosts=known)
    hosts = [*fleet.hosts()[:2], *behind(fleet, jump)[2:]]
    thread = threading.Thread(target=run, args=(hosts, Command(("deaf",), timeout_s=50)))
    thread.start()
    wait_for(lambda: len(marked(run.run_id)) >= processes)
    began = time.monotonic()
    run.stop.set()
    thread.join(10)
    assert time.monotonic() - began < 5
    assert set(run.codes.values()) == {"interrupted"}
    gone(run.run_id, 4)


CLIENT = """
import sys, threading
from pathlib import Path
from commcheck.command import Command
from commcheck.collect.base import Request
from commcheck.collect.ssh import SshSettings, SshVisitor
from commcheck.model import Host
known, run_id, *rest = sys.argv[1:]
address, port, key = rest
host = Host("h", {"ansible_host": address, "ansible_port": int(port), "ansible_user": "root",
                  "ansible_ssh_private_key_file": key})
visitor = SshVisitor(SshSettings(run_id=run_id, known_hosts=(Path(known),),
                                 ssh_config=Path("/dev/null")))
visitor.visit(host, lambda _: [Request(Command(("stubborn",), timeout_s=100))], lambda *_: None)
"""


def test_a_client_that_is_killed_leaves_nothing(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(1)
    fleet.tool("stubborn", "trap '' TERM HUP; setsid sh -c 'sleep 90' & while :; do sleep 30; done")
    server = fleet.servers[0]
    mark = f"k{secrets.token_hex(4)}"
    argv = [str(fleet.known_hosts), mark, server.address, str(server.port), str(fleet.key)]
    client = subprocess.Popen([sys.executable, "-c", CLIENT, *argv])
    try:
        wait_for(lambda: any(b"sleep" in cmdline(pid) for pid in marked(mark)))
    finally:
        client.send_signal(signal.SIGKILL)
        client.wait()
    gone(mark, 4)


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_two_names_of_one_machine_leave_each_other_alone(sshd_fleet: MakeFleet) -> None:
    fleet = sshd_fleet(2, servers=1)
    fleet.tool("long", "sleep 3; echo lived")
    run = Sweep(known_hosts=(fleet.known_hosts,))
    visitor, frames = run.visitor, run.frames
    short, long = fleet.hosts()
    visits = [
        threading.Thread(
            target=visitor.visit,
            args=(
                host,
                lambda _, c=command: [Request(Command(c))],
                frames.setdefault(host.name, Frames()),
            ),
        )
        for host, command in ((long, ("long",)), (short, ("true",)))
    ]
    for visit in visits:
        visit.start()
    visits[1].join()
    assert len(marked(run.run_id)) > 0  # the other one's
    visits[0].join()
    assert run.answers(long.name)[0].stdout == b"lived\n"
    assert run.answers(short.name)[0].rc == 0
    visitor.close()


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Transports, supervisors and visits all end with the run."""
    before = set(threading.enumerate())
    yield
    wait_for(
        lambda: not [each for each in set(threading.enumerate()) - before if each.is_alive()], 5
    )
