"""The runner itself, really executed by dash, bash and busybox; the last two where CI=true.

Most of these tests wait for limits to pass, so that each shell more takes as long again.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from commcheck.collect import runner
from commcheck.collect.base import Frame, State
from commcheck.collect.session import Session, command_line
from tests.collect.shells import (
    SHELLS,
    carriers,
    command,
    script,
    use_shell,
    visit,
    wait_until,
)

MARK = f"test-{os.getpid()}"


FIRST, *OTHERS = SHELLS


@pytest.fixture(params=[FIRST, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def shell(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    yield use_shell(request.param, tmp_path / "bin", monkeypatch)
    assert wait_until(lambda: not carriers(MARK), 2.0), "the session left something behind"


def run(shell: str, *requests: object, **settings: object) -> list[Frame]:
    return visit(shell, requests, Session(mark=MARK, **settings))  # type: ignore[arg-type]


def test_answers_come_apart_and_whole(shell: str) -> None:
    frames = run(
        shell,
        command("printf", "%s|", "it's", "two words", "$HOME", "`id`", "\n", "é"),
        script("printf out; printf err >&2; exit 3"),
        command("true"),
        script(r"printf '\000\377\n\n'"),
    )
    assert frames[0].stdout == "it's|two words|$HOME|`id`|\n|é|".encode()
    assert (frames[1].stdout, frames[1].stderr, frames[1].rc) == (b"out", b"err", 3)
    assert (frames[2].stdout, frames[2].stderr, frames[2].rc) == (b"", b"", 0)
    assert frames[3].stdout == b"\x00\xff\n\n"
    assert all(frame.state is State.DONE and not frame.truncated for frame in frames)
    assert all(0 < frame.started_s <= frame.ended_s for frame in frames)


def test_a_missing_tool_is_127_and_one_that_is_no_program_126(shell: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not executable")
    frames = run(shell, command("no-such-tool"), command(str(tmp_path / "data")))
    assert [frame.rc for frame in frames] == [127, 126]
    assert all(frame.stderr for frame in frames)


def test_commands_run_in_a_plain_environment(shell: str) -> None:
    (frame,) = run(shell, command("env"), path=("/opt/site tools/bin",))
    environ = dict(line.split("=", 1) for line in frame.stdout.decode().splitlines())
    assert environ["LC_ALL"] == environ["LANG"] == "C"
    assert environ["COMMCHECK_MARK"] == f"{MARK}:"
    # Appended: a site's own tools stay first.
    assert environ["PATH"].startswith(os.environ["PATH"])
    assert environ["PATH"].endswith(":/opt/site tools/bin")


def test_commands_get_no_stdin_and_none_of_the_runners_descriptors(shell: str) -> None:
    frames = run(shell, command("cat"), script("for n in 3 4 5 6 7 8 9; do echo $n >&$n; done"))
    assert frames[0].stdout == b""
    assert frames[1].stdout == b""


def test_a_flood_is_cut_on_the_host(shell: str) -> None:
    start = time.monotonic()
    flood = script("head -c 100000000 /dev/zero; head -c 100000000 /dev/zero >&2", cap=1000)
    frames = run(shell, flood, command("echo", "next"))
    assert (len(frames[0].stdout), frames[0].truncated) == (1000, True)
    assert len(frames[0].stderr) <= 1000
    assert frames[1].stdout == b"next\n"
    assert time.monotonic() - start < 8


def test_exactly_the_cap_is_whole(shell: str) -> None:
    frames = run(shell, script("printf 12345", cap=5), script("printf 123456", cap=5))
    assert [(frame.stdout, frame.truncated) for frame in frames] == [
        (b"12345", False),
        (b"12345", True),
    ]


def test_one_that_ignores_term_is_killed_at_its_limit(shell: str) -> None:
    frames = run(
        shell,
        script("trap '' TERM; echo begun; sleep 60; sleep 60", timeout_s=1),
        command("echo", "next"),
    )
    assert frames[0].state is State.TIMED_OUT
    assert frames[0].stdout == b"begun\n"
    assert frames[0].ended_s - frames[0].started_s < 5
    assert frames[1].stdout == b"next\n"


def test_only_time_makes_a_timeout(shell: str) -> None:
    (frame,) = run(shell, script("exit 124"))
    assert (frame.rc, frame.state) == (124, State.DONE)


def test_what_a_command_leaves_behind_holds_nothing_up(shell: str) -> None:
    start = time.monotonic()
    frames = run(
        shell,
        script("sleep 60 & echo hi"),
        script("setsid sh -c 'setsid sleep 60 & sleep 60' & echo there"),
        script("setsid sleep 60 >/dev/null 2>&1 </dev/null & echo quiet"),
        command("echo", "next"),
    )
    assert [frame.stdout for frame in frames] == [b"hi\n", b"there\n", b"quiet\n", b"next\n"]
    assert [frame.rc for frame in frames] == [0, 0, 0, 0]
    # Their children were not waited for, and the fixture sees that none lives on.
    assert all(frame.ended_s - frame.started_s < 2 for frame in frames)
    assert time.monotonic() - start < 20


def test_output_that_imitates_markers_is_output(shell: str) -> None:
    nonce = "0" * runner.NONCE_CHARS
    text = rf"printf '\n{nonce} end 1 0 1.0 plain\n\n{nonce} bye\n'"
    frames = run(shell, script(text), command("echo", "next"))
    assert frames[0].stdout.count(nonce.encode()) == 2
    assert frames[1].stdout == b"next\n"


def test_no_process_shows_the_nonce(shell: str) -> None:
    (frame,) = run(shell, script("cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null"))
    assert MARK.encode() in frame.stdout
    assert not re.search(rb"\bN=[0-9a-f]{32}", frame.stdout)


def test_sysfs_words_get_the_prefix(shell: str, tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    (tmp_path / "sys/thing").write_text("fake\n")
    (frame,) = run(shell, command("cat", "/sys/thing"), sysfs_root=str(tmp_path))
    assert frame.stdout == b"fake\n"
    assert frame.key == "once: cat /sys/thing"


# --- the session's end ---------------------------------------------------------------------------


class Raw:
    """The runner without the client: what it does must not rest on the client's good will."""

    def __init__(self, shell: str, mark: str, *, deadline_s: float = 60.0) -> None:
        self.session = Session(mark=mark, deadline_s=deadline_s)
        self.nonce = "a" * runner.NONCE_CHARS
        self.child = subprocess.Popen(
            (shell, "-c", command_line(self.session)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.send(runner.first_part(mark=mark, nonce=self.nonce, deadline_s=deadline_s))
        self.read_to(b"end 0")

    def send(self, data: bytes) -> None:
        assert self.child.stdin
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def read_to(self, words: bytes) -> None:
        assert self.child.stdout
        while words not in (line := self.child.stdout.readline()):
            assert line, f"no {words!r}"

    def ask(self, *requests: object) -> None:
        self.send(runner.second_part(requests, nonce=self.nonce))  # type: ignore[arg-type]

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.child.stdin
        assert self.child.stdout
        self.child.stdin.close()
        self.child.wait(10)
        self.child.stdout.close()


STUBBORN = (
    "(trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' "
    ">/dev/null 2>&1 </dev/null &); trap '' TERM; echo up; sleep 60; sleep 60"
)


def test_the_lifelines_end_kills_everything(shell: str) -> None:
    with Raw(shell, MARK) as raw:
        raw.ask(script(STUBBORN, timeout_s=60))
        assert wait_until(lambda: len(carriers(MARK)) > 10, 3.0)
        start = time.monotonic()
        assert raw.child.stdin
        raw.child.stdin.close()
        assert wait_until(lambda: not carriers(MARK), 3.0)
        assert time.monotonic() - start < 2.5


def test_a_client_gone_between_the_two_parts_leaves_nothing(shell: str) -> None:
    with Raw(shell, MARK):
        assert carriers(MARK)
    assert wait_until(lambda: not carriers(MARK), 2.0)


def test_a_second_part_cut_short_runs_nothing(shell: str, tmp_path: Path) -> None:
    with Raw(shell, MARK) as raw:
        raw.send(runner.second_part([command("touch", str(tmp_path / "t"))], nonce=raw.nonce)[:-1])
    assert not (tmp_path / "t").exists()


def test_the_runner_ends_by_itself_where_the_client_says_nothing_more(
    shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "DEADLINE_SLACK_S", 0.0)
    with Raw(shell, MARK, deadline_s=1.0) as raw:
        raw.ask(script(STUBBORN, timeout_s=60))
        assert wait_until(lambda: not carriers(MARK), 4.0)


def test_two_sessions_on_one_machine_know_their_own(shell: str) -> None:
    one, ten = f"{MARK}.1", f"{MARK}.10"
    with Raw(shell, ten) as other:
        other.ask(script("sleep 60", timeout_s=60))
        assert wait_until(lambda: len(carriers(ten)) > 4, 3.0)
        visit(shell, [script("setsid sleep 60 & echo done")], Session(mark=one))
        with Raw(shell, one) as raw:
            raw.ask(script("sleep 60", timeout_s=60))
        assert wait_until(lambda: not carriers(one), 3.0)
        assert len(carriers(ten)) > 4
    assert wait_until(lambda: not carriers(ten), 3.0)


def test_a_client_killed_outright_leaves_nothing(shell: str, tmp_path: Path) -> None:
    client = tmp_path / "client.py"
    client.write_text(
        "import sys\n"
        "from commcheck.collect.session import Session\n"
        "from tests.collect.shells import script, visit\n"
        f"visit(sys.argv[1], [script({STUBBORN!r}, timeout_s=60)], Session(mark={MARK!r}))\n"
    )
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        (sys.executable, str(client), shell), env={**os.environ, "PYTHONPATH": str(root)}
    )
    try:
        assert wait_until(lambda: len(carriers(MARK)) > 4, 10.0)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert wait_until(lambda: not carriers(MARK), 4.0)


@pytest.mark.parametrize("name", ["csh", "bash -r", "dash"])
def test_any_login_shell_takes_the_command(name: str) -> None:
    words = name.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    for become in (False, True):
        session = Session(mark=MARK, become=become)
        line = command_line(session)
        result = subprocess.run(
            (*words, "-c", line), input=b"", capture_output=True, timeout=20, check=False
        )
        # Nothing was sent, so that it runs nothing; and its login shell complains of nothing.
        assert (result.stdout, result.stderr) == (b"", b"")


@pytest.mark.parametrize("mark", ["", "a b", "a;b", "a:b", "é", "a" * 65, "a\n"])
def test_a_mark_that_could_not_stand_in_a_command_is_refused(mark: str) -> None:
    with pytest.raises(ValueError, match="mark"):
        command_line(Session(mark=mark))


# --- without timeout(1), and sudo ----------------------------------------------------------------


def test_the_shell_keeps_the_limit_where_there_is_no_timeout(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for tool in ("env", "head", "grep", "sleep", "id", "uname", "cat", "setsid"):
        (bare / tool).symlink_to(shutil.which(tool) or tool)
    (bare / "sh").symlink_to(Path(shell).readlink())
    (bare / "timeout").write_text("#!/bin/sh\nexit 1\n")  # an old busybox: another syntax
    (bare / "timeout").chmod(0o755)
    monkeypatch.setenv("PATH", str(bare))
    start = time.monotonic()
    frames = run(
        shell,
        command("sleep", "60", timeout_s=1),
        script("trap '' TERM; sleep 60; sleep 60", timeout_s=1),
        script("printf out; printf err >&2; exit 5"),
        command("ports"),  # a function of the runner
    )
    assert [frame.state for frame in frames[:2]] == [State.TIMED_OUT] * 2
    assert (frames[2].stdout, frames[2].stderr, frames[2].rc) == (b"out", b"err", 5)
    assert frames[3].rc == 127
    assert time.monotonic() - start < 20


FULL_SUDO = """#!/bin/sh
test "$1" = -n || exit 9
shift
echo "$*" >>{log}
FAKE_ROOT=1 exec "$@"
"""
ONE_TOOL = """#!/bin/sh
shift
case $1 in
  echo) FAKE_ROOT=1 exec "$@" ;;
  false) exit 1 ;;
  sleep) trap '' TERM; "$@" ;;
  *) echo "sudo: a password is required" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def as_nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder first on PATH, and a login shell that is not root."""
    folder = Path(tempfile.mkdtemp(prefix="commcheck-test-"))  # pytest's own folders are 0700
    folder.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    login = 'exec sh "$@"\n'
    if os.getuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed")
        login = 'exec setpriv --reuid=65534 --regid=65534 --clear-groups sh "$@"\n'
    (folder / "login").write_text("#!/bin/sh\n" + login)
    (folder / "login").chmod(0o755)
    yield folder
    assert wait_until(lambda: not carriers(MARK), 3.0)
    shutil.rmtree(folder)


def sudo(folder: Path, text: str) -> Path:
    log = folder / "log"
    log.touch()
    log.chmod(0o666)
    (folder / "sudo").write_text(text.replace("{log}", str(log)))
    (folder / "sudo").chmod(0o755)
    return log


def test_full_sudo_is_probed_once_and_runs_only_what_needs_root(as_nobody: Path) -> None:
    log = sudo(as_nobody, FULL_SUDO)
    frames = run(
        str(as_nobody / "login"),
        command("printenv", "FAKE_ROOT"),
        command("printenv", "FAKE_ROOT", root=True),
        command("printenv", "COMMCHECK_MARK", root=True),
    )
    assert [frame.rc for frame in frames] == [1, 0, 0]
    assert frames[2].stdout.decode() == f"{MARK}:\n"
    lines = log.read_text().splitlines()
    assert lines.count("env true") == 1
    # The probe, two commands, and the sweep at the end as root.
    assert len([line for line in lines if line.startswith("env ")]) == 4


def test_without_need_of_root_sudo_is_never_called(as_nobody: Path) -> None:
    log = sudo(as_nobody, FULL_SUDO)
    run(str(as_nobody / "login"), command("true"))
    assert log.read_text() == ""


def test_a_tool_allowed_alone_runs_and_another_is_refused(as_nobody: Path) -> None:
    sudo(as_nobody, ONE_TOOL)
    frames = run(
        str(as_nobody / "login"),
        command("echo", "hi", root=True),
        command("ethtool", "-m", "eth0", root=True),
        command("false", root=True),
        command("id", "-u"),
    )
    assert (frames[0].stdout, frames[0].state) == (b"hi\n", State.DONE)
    assert (frames[1].rc, frames[1].state) == (1, State.SUDO_REFUSED)
    assert (frames[2].rc, frames[2].state) == (1, State.DONE)
    assert frames[3].state is State.DONE


def test_a_command_that_cannot_be_killed_does_not_hold_up_the_bundle(as_nobody: Path) -> None:
    sudo(as_nobody, ONE_TOOL)
    start = time.monotonic()
    frames = run(
        str(as_nobody / "login"),
        command("sleep", "50", timeout_s=1, root=True),
        command("echo", "next"),
    )
    assert (frames[0].state, frames[1].stdout) == (State.TIMED_OUT, b"next\n")
    assert time.monotonic() - start < 8


def test_no_sudo_at_all_is_a_refusal(as_nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = as_nobody / "bare"
    bare.mkdir()
    for tool in ("sh", "env", "head", "grep", "sleep", "timeout", "setpriv", "true"):
        if found := shutil.which(tool):
            (bare / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(bare))
    # The runner appends the usual folders: sudo may be in one of them on this machine.
    if shutil.which("sudo", path="/usr/local/sbin:/usr/sbin:/sbin"):
        pytest.skip("this machine has a sudo in sbin")
    frames = run(str(as_nobody / "login"), command("true", root=True), command("true"))
    assert [(frame.rc, frame.state) for frame in frames] == [
        (None, State.SUDO_REFUSED),
        (0, State.DONE),
    ]


def test_become_runs_the_whole_bundle_under_sudo(as_nobody: Path) -> None:
    log = sudo(as_nobody, FULL_SUDO)
    frames = run(str(as_nobody / "login"), command("printenv", "FAKE_ROOT"), become=True)
    assert frames[0].stdout == b"1\n"
    assert any("COMMCHECK_BECOME=sudo" in line for line in log.read_text().splitlines())
    assert not re.search(r"[0-9a-f]{32}", log.read_text()), "the nonce is in nobody's arguments"


def test_become_refused_goes_on_as_the_user(as_nobody: Path) -> None:
    sudo(as_nobody, ONE_TOOL)
    frames = run(str(as_nobody / "login"), command("printenv", "COMMCHECK_BECOME"), become=True)
    assert frames[0].stdout == b"refused\n"


def test_sessions_side_by_side(shell: str) -> None:
    results: dict[int, bytes] = {}

    def one(number: int) -> None:
        session = Session(mark=f"{MARK}.{number}")
        results[number] = visit(shell, [command("echo", str(number))], session)[0].stdout

    threads = [threading.Thread(target=one, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: f"{number}\n".encode() for number in range(6)}
