"""Loading checks by path: overrides, broken files, what is refused."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.discover import bundled_folder, discover, in_order_of_needs, strays, validate_edges
from commcheck.errors import CheckError
from commcheck.judge import judge_host
from commcheck.model import Host, Kind, Machine, Status
from commcheck.plan import Asked

CHECK = '''"""A site's check.

Why: it is theirs.
Reads: nothing.
"""

from dataclasses import dataclass

from commcheck.check import Check, Nothing, Reader, passed
from commcheck.model import Machine, Verdict, Words


@dataclass(frozen=True, slots=True)
class Note:
    text: str


def judge(seen: Nothing, machine: Machine, want: Nothing, limits: Nothing) -> Verdict:
    return passed(Note("from the site").text)


CHECK = Check(
    id="{id}",
    title=Words("A site's check", "站点检查"),
    subject=Machine,
    seen=Nothing,
    judge=judge,
    needs={needs},
)
'''


def site(folder: Path, name: str, *, check_id: str = "", needs: str = "()", text: str = "") -> Path:
    path = folder / "physical" / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    check_id = check_id or f"physical.{name.replace('_', '-')}"
    path.write_text(text or CHECK.format(id=check_id, needs=needs))
    return path


def verdict_of(folder: Path, check_id: str, cwd: Path) -> tuple[Status, Kind, str]:
    found = {one.id: one for one in discover([folder], cwd=cwd)}
    machine = Machine("gpu-01")
    (result,) = judge_host(
        Host("gpu-01"),
        [Asked(found[check_id].check)],
        machine,
        {},
        None,
        lambda data: data.decode(),
    )
    return result.status, result.kind, result.worst.verdict.reason


def test_bundled_checks_are_found(tmp_path: Path) -> None:
    found = discover(cwd=tmp_path)
    assert "physical.reachable" in {one.id for one in found}
    assert all(one.bundled for one in found)
    assert [one.check.layer.height for one in found] == sorted(
        one.check.layer.height for one in found
    )


def test_the_checkout_is_not_found_twice() -> None:
    assert all(one.overrides is None for one in discover(cwd=bundled_folder("checks").parent))


def test_a_site_adds_and_overrides(tmp_path: Path) -> None:
    site(tmp_path / "checks", "our_own")
    site(tmp_path / "checks", "reachable")
    found = {one.id: one for one in discover(cwd=tmp_path)}
    assert not found["physical.our-own"].bundled
    assert found["physical.our-own"].overrides is None
    override = found["physical.reachable"].overrides
    assert override is not None
    assert override.name == "reachable.py"


def test_two_folders_may_hold_a_file_of_one_name(tmp_path: Path) -> None:
    site(tmp_path / "a", "our_own")
    site(tmp_path / "b", "our_own")
    found = {one.id: one for one in discover([tmp_path / "a", tmp_path / "b"], cwd=tmp_path)}
    assert found["physical.our-own"].path.parts[-3] == "a"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def broken(:\n", "our_own.py:1)"),
        ("import nothing_of_that_name\n", "ModuleNotFoundError"),
        ("raise SystemError('no')\n", "SystemError: no ("),
        ("", "has no CHECK"),
        ("CHECK = 3\n", "has no CHECK"),
    ],
)
def test_a_broken_site_check_answers_error(tmp_path: Path, text: str, says: str) -> None:
    site(tmp_path / "site", "our_own", text=text or "X = 1\n")
    status, kind, reason = verdict_of(tmp_path / "site", "physical.our-own", tmp_path)
    assert (status, kind) == (Status.ERROR, Kind.CHECK)
    assert says in reason


def test_a_check_in_no_layers_folder_is_told(tmp_path: Path) -> None:
    path = site(tmp_path / "checks", "our_own")
    stray = tmp_path / "checks" / "phsyical" / "our_other.py"
    stray.parent.mkdir()
    stray.write_text(CHECK.format(id="physical.our-other", needs="()"))
    (stray.parent / "notes.py").write_text("raise SystemExit('it was run')\n")
    path.with_name("_helper.py").write_text("")
    says = (
        f"{stray}: warning: not asked: folder 'phsyical' is none of physical, library, runtime, "
        "application (did you mean 'physical'?) [layer]"
    )
    assert strays(cwd=tmp_path) == strays([tmp_path / "checks"], cwd=tmp_path / "x") == (says,)
    assert strays(cwd=bundled_folder("checks").parent) == ()


def test_a_named_folder_holds_folders_of_layers(tmp_path: Path) -> None:
    site(tmp_path / "site", "our_own")
    with pytest.raises(CheckError, match=f"name the one above it: --checks {tmp_path / 'site'} "):
        discover([tmp_path / "site" / "physical"], cwd=tmp_path)
    with pytest.raises(CheckError, match=r"holds none of the folders physical, .*application \["):
        discover([tmp_path], cwd=tmp_path)


def test_an_id_of_another_layer_is_broken(tmp_path: Path) -> None:
    site(tmp_path / "site", "our_own", check_id="library.our-own")
    _, _, reason = verdict_of(tmp_path / "site", "physical.our-own", tmp_path)
    assert "is not physical." in reason


@pytest.mark.parametrize("name", ["", "physical", "physical/our_own.py"])
def test_what_everybody_may_write_is_refused(tmp_path: Path, name: str) -> None:
    site(tmp_path / "checks", "our_own")
    path = tmp_path / "checks" / name
    path.chmod(path.stat().st_mode | stat.S_IWOTH)
    with pytest.raises(CheckError, match=f"everybody may write {path}"):
        discover(cwd=tmp_path)


@pytest.mark.parametrize("name", ["", "physical", "physical/our_own.py"])
def test_what_another_user_owns_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site(tmp_path / "checks", "our_own", text="raise SystemExit('it was run')")
    path = tmp_path / "checks" / name
    if os.geteuid() == 0:
        os.chown(path, 4242, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(CheckError, match="another user"):
        discover(cwd=tmp_path)


def test_a_folder_that_the_operator_names_is_loaded_once_whoever_owns_it(tmp_path: Path) -> None:
    path = site(tmp_path / "checks", "our_own")
    path.chmod(0o666)
    found = {one.id: one for one in discover([tmp_path / "checks"], cwd=tmp_path)}
    assert found["physical.our-own"].overrides is None


def test_a_folder_named_by_the_operator_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="no such folder"):
        discover([tmp_path / "nowhere"], cwd=tmp_path)


def test_somebody_elses_checks_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "lint.py").write_text("raise SystemExit(1)\n")
    os.chmod(tmp_path / "checks", 0o777)  # noqa: PTH101 - the mode matters, not the path
    assert all(one.bundled for one in discover(cwd=tmp_path))


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"one": "('physical.two',)", "two": "('physical.one',)"}, "go in a circle"),
        ({"one": "('physical.nowhere',)"}, "is no check of its layer"),
    ],
)
def test_needs_are_checked(tmp_path: Path, files: dict[str, str], says: str) -> None:
    for name, needs in files.items():
        site(tmp_path / "site", name, needs=needs)
    with pytest.raises(CheckError, match=says):
        discover([tmp_path / "site"], cwd=tmp_path)


def test_ids_must_differ_by_more_than_punctuation(tmp_path: Path) -> None:
    site(tmp_path / "site", "one", check_id="physical.a-b")
    site(tmp_path / "site", "two", check_id="physical.a-b")
    with pytest.raises(CheckError, match="again"):
        discover([tmp_path / "site"], cwd=tmp_path)


def test_order_of_needs_keeps_the_given_order_else(tmp_path: Path) -> None:
    site(tmp_path / "site", "aa", needs="('physical.zz',)")
    site(tmp_path / "site", "bb")
    site(tmp_path / "site", "zz")
    found = {one.id: one.check for one in discover([tmp_path / "site"], cwd=tmp_path)}
    asked = [found[f"physical.{name}"] for name in ("aa", "bb", "zz")]
    assert [check.id[-2:] for check in in_order_of_needs(asked)] == ["zz", "aa", "bb"]


EDGES = (
    CHECK.replace("{needs}", "()")
    .replace("import Check, ", "import Check, Explained, ")
    .replace("import Machine, ", "import Cause, Machine, ")
    .replace(
        "    subject=Machine,",
        """    subject=Machine,
    causes=(Cause("{id}-broken", Words("a", "a"), Words("a", "a"), ()),),
    explained_by=(Explained("{by}"),),""",
    )
)


def test_no_check_explains_itself(tmp_path: Path) -> None:
    for name, by in (("one", "two"), ("two", "three"), ("three", "one")):
        text = EDGES.replace("{id}-broken", f"{name}-broken").replace("{by}", f"{by}-broken")
        site(tmp_path, name, text=text.replace("{id}", f"physical.{name}"))
    with pytest.raises(CheckError, match="would explain itself"):
        discover([tmp_path], cwd=tmp_path)


def test_an_edge_names_a_cause_that_some_check_finds(tmp_path: Path) -> None:
    text = EDGES.replace("{id}-broken", "a-broken").replace("{by}", "nobody-finds-it")
    site(tmp_path, "edge", text=text.replace("{id}", "physical.edge"))
    found = discover([tmp_path], cwd=tmp_path)  # a site may have taken the cause away: that may be
    ours = [replace(one, bundled=True) for one in found]
    with pytest.raises(CheckError, match="nobody-finds-it"):
        validate_edges(ours)
