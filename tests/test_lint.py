"""Lint: playbooks, waivers and checks, by file or folder, each problem at its place."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from commcheck.discover import bundled_folder, discover
from commcheck.discover import load as load_check
from commcheck.lint import RULES, lint
from commcheck.model import Layer

HERE = Path(__file__).parent / "playbooks"
FOUND = tuple(
    load_check(path, Layer(path.parent.name)) for path in sorted(HERE.glob("checks/*/*.py"))
)
TODAY = date(2026, 12, 1)
GOOD = (HERE / "checks" / "physical" / "pfc_enabled.py").read_text()


def lines(cwd: Path, *paths: str, today: date = TODAY) -> list[str]:
    notes = lint([Path(path) for path in paths], FOUND, cwd=cwd, today=today)
    return [
        *(problem.line() for problem in sorted(notes.errors)),
        *(problem.line("warning") for problem in sorted(notes.warnings)),
    ]


def check_file(cwd: Path, text: str, name: str = "physical/pfc_enabled.py") -> str:
    path = cwd / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return name


def test_what_is_bundled_is_clean() -> None:
    folders = [bundled_folder("playbooks"), bundled_folder("checks")]
    notes = lint(folders, discover(cwd=Path("/")), cwd=Path("/"), today=TODAY)
    assert [problem.line() for problem in sorted(notes.errors | notes.warnings)] == []


def test_a_folder_stands_for_its_playbooks_and_its_layers(tmp_path: Path) -> None:
    shutil.copytree(HERE / "right", tmp_path / "playbooks")
    shutil.copytree(HERE / "checks", tmp_path / "playbooks", dirs_exist_ok=True)
    assert lines(tmp_path, "playbooks") == lines(tmp_path) == []
    (tmp_path / "playbooks" / "bad.yml").write_text("name: x\n")
    (tmp_path / "playbooks" / "physical" / "bad.py").write_text("CHECK = 3\n")
    (tmp_path / "playbooks" / "physical" / "_helper.py").write_text("1 +\n")
    wanted = [
        "playbooks/bad.yml:1:1: error: a playbook wants a key 'plays' [missing-key]",
        "playbooks/physical/bad.py:1:1: error: has no CHECK = Check(...) [check]",
    ]
    assert lines(tmp_path) == wanted
    assert lines(tmp_path, "playbooks/physical") == wanted[1:]


@pytest.mark.parametrize("name", ["params", "misspelt-checks", "doubled-keys", "tabs", "no-utf-8"])
def test_playbooks_are_told_as_a_run_tells_them(name: str) -> None:
    wanted = (HERE / "wrong" / f"{name}.txt").read_text().splitlines()
    assert lines(HERE / "wrong", f"{name}.yaml") == wanted


def test_files_of_waivers_are_known_by_their_key() -> None:
    for name in ("wrong-values", "not-a-list"):
        wanted = (HERE / "wrong-waivers" / f"{name}.txt").read_text().splitlines()
        assert lines(HERE / "wrong-waivers", f"{name}.yaml") == wanted


def test_a_void_waiver_is_a_warning(tmp_path: Path) -> None:
    waivers = "waivers:\n  - check: library.env\n    hosts: spare\n    until: 2026-12-01\n"
    waivers += "    reason: not in use yet\n"
    playbook = "name: x\nplays: [{layer: library, checks: [library.*]}]\n" + waivers
    (tmp_path / "w.yaml").write_text(waivers)
    (tmp_path / "p.yaml").write_text(playbook)
    assert lines(tmp_path, "w.yaml", "p.yaml") == []
    says = "the waiver of library.env on spare is void, its last day was 2026-12-01"
    assert [line.split(";")[0] for line in lines(tmp_path, "w.yaml", today=date(2026, 12, 2))] == [
        f"w.yaml:2:5: warning: {says}"
    ]
    assert lines(tmp_path, "p.yaml", today=date(2026, 12, 2))[0].startswith("p.yaml:4:5: warning:")


def test_at_most_twenty_errors_a_file(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("".join(f"key{number}: 1\n" for number in range(50)))
    assert len(lines(tmp_path, "a.yaml", "b.yaml")) == 40


def test_what_is_neither(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "hosts.ini").write_text("[gpu]\n")
    assert lines(tmp_path, "empty", "hosts.ini", "gone.yaml") == [
        "empty:1:1: error: neither playbooks nor folders of checks are here [file]",
        "gone.yaml:1:1: error: cannot be read: No such file or directory [file]",
        "hosts.ini:1:1: error: neither a playbook or waivers (.yaml) nor a check (.py) [file]",
    ]


# --- check files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\ndef f(:\n", ":2:7: error: SyntaxError: invalid syntax [check]"),
        (
            "x = 1\0\n",
            ":1:1: error: SyntaxError: source code string cannot contain null bytes [check]",
        ),
        ("x = 1\n\n1 / 0\n", ":3:1: error: ZeroDivisionError: division by zero [check]"),
        ("import nowhere\n", ":1:1: error: ModuleNotFoundError: No module named 'nowhere' [check]"),
        (
            GOOD.replace("physical.pfc-enabled", "library.pfc"),
            ":1:1: error: its id 'library.pfc' is not physical.<noun> [check]",
        ),
    ],
    ids=["syntax", "nul", "raises", "import", "id"],
)
def test_check_files_that_cannot_be_loaded(tmp_path: Path, text: str, says: str) -> None:
    name = check_file(tmp_path, text)
    assert lines(tmp_path, name) == [name + says]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("Why:", "Because:", ":1:1: error: the docstring has no Why: [check-doc]"),
        ("PFC 已开启", " ", ":17:1: error: title: nothing in 'zh' [check-words]"),
        (
            "judge=judge,",
            'judge=judge,\n    needs=("physical.nic-mut",),',
            ":17:1: error: needs 'physical.nic-mut', which is no other check of its layer "
            "(did you mean 'physical.nic-mtu'?) [check-needs]",
        ),
        (
            "judge=judge,",
            'judge=judge,\n    needs=("physical.pfc-enabled",),',
            ":17:1: error: needs 'physical.pfc-enabled', which is no other check of its layer "
            "(did you mean 'physical.nic-firmware'?) [check-needs]",
        ),
        (
            "judge=judge,",
            'judge=judge,\n    causes=(Cause("Pfc_off", Words("a", "b"), Words("c", "d"), ()),),',
            ":17:1: error: cause 'Pfc_off' has no remedy [check-cause]",
        ),
    ],
    ids=["doc", "words", "needs", "needs-itself", "cause"],
)
def test_check_files_that_say_too_little(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = GOOD.replace("import Machine", "import Cause, Machine").replace(old, new)
    name = check_file(tmp_path, text)
    assert name + says in lines(tmp_path, name)


FAILING = (
    GOOD.replace("Nothing, passed", "Nothing, Reader, failed, reads")
    .replace("import Machine", "import Cause, Machine, Rail, Remedy")
    .replace(
        "def judge(_seen: Nothing, _machine: Machine",
        "from dataclasses import dataclass\n"
        "from commcheck.command import Command\n"
        'READER = Reader("qos", (Command(("mlnx_qos", "-i", "{netdev}")),), str, Rail)\n'
        "@dataclass(frozen=True, slots=True)\n"
        "class Seen:\n"
        "    qos: str = reads(READER)\n"
        'REMEDY = Remedy("mlnx_qos -i {netdev} --pfc {row}", Words("a", "b"), Words("a", "b"))\n'
        'OFF = Cause("pfc-off", Words("a", "b"), Words("a", "b"), (REMEDY,))\n'
        "def judge(_seen: Seen, _rail: Rail",
    )
    .replace('passed("fine")', 'failed(OFF, "off", netdev=_rail.netdev, **{"row": "1"})')
    .replace("subject=Machine,\n    seen=Nothing", "subject=Rail,\n    seen=Seen")
    .replace("judge=judge,", "judge=judge,\n    causes=(OFF,),")
)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", "", ""),
        (
            "{netdev} --pfc",
            "{netdv} --pfc",
            "cause pfc-off: nothing in the file fills {netdv} (did you mean 'netdev'?)",
        ),
        ("{row}", "{bits}", "cause pfc-off: nothing in the file fills {bits}"),
        (
            '"{netdev}")',
            '"{netdv}")',
            "reader qos: a rail has no netdv (did you mean 'netdev'?)",
        ),
    ],
    ids=["whole", "typo", "not-given", "command"],
)
def test_a_place_is_one_that_something_fills(tmp_path: Path, old: str, new: str, says: str) -> None:
    name = check_file(tmp_path, FAILING.replace(old, new) if old else FAILING)
    assert [line.partition(" error: ")[2] for line in lines(tmp_path, name)] == (
        [f"{says} [check-place]"] if says else []
    )


def test_an_id_is_the_name_of_the_file(tmp_path: Path) -> None:
    name = check_file(tmp_path, GOOD, "physical/pfc_depth.py")
    assert lines(tmp_path, name) == [
        f"{name}:17:1: error: its id 'physical.pfc-enabled' is not the file's name, which says "
        "'physical.pfc-depth' [check-id]"
    ]


def test_a_check_beside_the_layers_is_told(tmp_path: Path) -> None:
    check_file(tmp_path, GOOD)
    check_file(tmp_path, GOOD, "phsyical/pfc_enabled.py")
    check_file(tmp_path, "X = 1\n", "tools/count.py")
    assert lines(tmp_path, ".") == [
        "phsyical/pfc_enabled.py:1:1: error: folder 'phsyical' is none of physical, library, "
        "runtime, application (did you mean 'physical'?) [layer]"
    ]


def test_a_check_lives_in_the_folder_of_its_layer(tmp_path: Path) -> None:
    name = check_file(tmp_path, GOOD, "phyiscal/pfc_enabled.py")
    assert lines(tmp_path, name) == [
        f"{name}:1:1: error: folder 'phyiscal' is none of physical, library, runtime, application "
        "(did you mean 'physical'?) [layer]"
    ]


def test_a_check_that_was_found_is_not_loaded_again() -> None:
    name = "checks/physical/nic_mtu.py"
    before = next(one for one in FOUND if one.id == "physical.nic-mtu").check.limits
    assert lines(HERE, name) == []
    assert next(one for one in FOUND if one.id == "physical.nic-mtu").check.limits is before


def test_rules_have_stable_names_and_say_what_they_want() -> None:
    assert all(name == name.lower() and what for name, what in RULES.items())
