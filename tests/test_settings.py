"""The configuration file, as the command line reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from commcheck.cli import main
from commcheck.errors import UsageError
from commcheck.settings import for_command, keys_of, settings

COMMCHECK = Path(sys.executable).parent / "commcheck"
KNOWN = {
    key for each in main.commands.values() for option in each.params for key in keys_of(option)
}
RUN = main.commands["run"]


@pytest.fixture(autouse=True)
def no_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user without settings of their own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    (tmp_path / "xdg" / "commcheck").mkdir(parents=True)
    return tmp_path / "xdg" / "commcheck" / "config.toml"


def write(folder: Path, text: str, name: str = "commcheck.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def values(explicit: Path | None, cwd: Path) -> dict[str, object]:
    return for_command(RUN, settings(explicit, cwd, KNOWN))[0]


def test_the_nearer_file_is_the_stronger(tmp_path: Path, no_user: Path) -> None:
    no_user.write_text('forks = 1\nuser = "me"\nlimit = "a"\n')
    repository = tmp_path / "repo"
    (repository / ".git").mkdir(parents=True)
    write(tmp_path, "agent = true\n")  # above the repository: not ours
    write(repository, 'forks = 2\nlimit = "b"\n')
    here = repository / "deep" / "er"
    here.mkdir(parents=True)
    named = write(tmp_path / "named", "forks = 3\n", "x.toml")
    assert values(named, here) == {"forks": 3, "limit": "b", "user": "me"}
    assert values(None, here) == {"forks": 2, "limit": "b", "user": "me"}
    used = for_command(RUN, settings(None, here, KNOWN))[1]
    assert used["user"].place == f"{no_user}:2"
    assert used["limit"].place == f"{repository / 'commcheck.toml'}:2"


def test_paths_count_from_the_file(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path, 'inventory = ["inv.yaml", "a,b,"]\nout = "~/runs"\nwaivers = "w.yaml"\n')
    below = tmp_path / "below"
    below.mkdir()
    found = values(None, below)
    assert found["inventory"] == [str(tmp_path / "inv.yaml"), "a,b,"]
    assert found["out"] == str(Path("~/runs").expanduser())
    assert found["waivers"] == [str(tmp_path / "w.yaml")]
    assert values(None, tmp_path)["waivers"] == ["w.yaml"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\nfork = 3\n", "commcheck.toml:2: error: no setting 'fork' (did you mean 'forks'?)"),
        ("host_deadline = 3\n", "did you mean 'host-deadline'?"),
        ("# forks\n[zebra.x]\na = 1\n", "commcheck.toml:2: error: no setting 'zebra'"),
        ("dry-run = true\n", "no setting 'dry-run'"),
        ('resume = "last"\n', "no setting 'resume'"),
        ("forks = 'many'\n", "commcheck.toml:1: error: forks: 'many' is not a valid"),
        ("forks = 0\n", "forks: 0 is not in the range"),
        ("forks = [1, 2]\n", "commcheck.toml:1: error: forks:"),
        ("x = 1\n\ny = \n", "commcheck.toml:3:5: error: no TOML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        values(None, tmp_path)
    assert told in str(caught.value)


def test_a_file_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "open", "forks = 3\n")
    path.parent.chmod(0o777)
    with pytest.raises(UsageError, match="everybody may write"):
        values(None, tmp_path / "open")
    assert values(path, tmp_path / "open") == {"forks": 3}  # whoever names it, means it
    path.parent.chmod(0o755)
    assert values(None, tmp_path / "open") == {"forks": 3}


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "forks = 3\n")
    if os.geteuid() == 0:
        os.chown(path, 4242, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(UsageError, match="another user"):
        values(None, tmp_path)
    assert values(path, tmp_path) == {"forks": 3}


def test_option_over_environment_over_file(tmp_path: Path) -> None:
    write(tmp_path, 'forks = 3\ninventory = "a,"\nformat = "json"\n')

    def dry_run(*words: str, **variables: str) -> str:
        done = subprocess.run(
            [COMMCHECK, "run", "--dry-run", *words],
            cwd=tmp_path,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert "forks = 3   from commcheck.toml:1" in dry_run()
    assert "forks = 4   from the environment" in dry_run(COMMCHECK_FORKS="4")
    told = dry_run("-f", "5", COMMCHECK_FORKS="4")
    assert "forks = 5   from the command line" in told
    assert "inventory = ('a,',)   from commcheck.toml:2" in told


def test_a_broken_file_stops_no_help_and_every_run(tmp_path: Path) -> None:
    write(tmp_path, "forky = 3\n")
    words = [str(COMMCHECK), "run", "--help"]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    words = [str(COMMCHECK), "run", "-i", "a,"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "commcheck.toml:1: error: no setting 'forky' (did you mean 'forks'?) [unknown-setting]\n"
    )


def test_every_default_of_an_option_is_taken_from_a_file(tmp_path: Path) -> None:
    """No option of ``run`` that may stand in a file needs another way of writing it."""
    for option in RUN.params:
        for key in keys_of(option):
            if isinstance(option, click.Option) and option.is_flag and "-" not in key:
                write(tmp_path, f"{key} = true\n")
                if key not in ("config", "dry-run", "check", "help"):
                    assert values(None, tmp_path) == {option.name: True}
