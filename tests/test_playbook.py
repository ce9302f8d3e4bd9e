"""What a playbook means, once it is read."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commcheck.discover import bundled_folder, discover
from commcheck.discover import load as load_check
from commcheck.errors import PlaybookError, Position
from commcheck.fields import Count
from commcheck.model import Host, Layer, Machine
from commcheck.playbook import Entry, Gate, Play, Severity, Suspects, load, locate, parse

HERE = Path(__file__).parent / "playbooks"
FOUND = tuple(
    load_check(path, Layer(path.parent.name)) for path in sorted(HERE.glob("checks/*/*.py"))
)
BUNDLED = discover(cwd=Path("/"))
LOOKING = {one.id for one in BUNDLED if not one.check.effects}


def ids(play: Play) -> list[str]:
    return [entry.check for entry in play.checks]


def params(entry: Entry) -> dict[str, object]:
    return {name: wanted.value for name, wanted in entry.params.items()}


def only_play(text: str) -> Play:
    (play,) = parse(f"name: x\nplays:\n  - {text}\n", "p.yaml", FOUND).plays
    return play


@pytest.mark.parametrize("name", ["default", "incident", "maintenance"])
def test_the_bundled_playbooks_climb_all_layers_with_every_check_that_looks(name: str) -> None:
    path = bundled_folder("playbooks") / f"{name}.yaml"
    playbook = load(path, BUNDLED)
    assert playbook.name == name
    assert "\ndescription: " in path.read_text()
    assert list(dict.fromkeys(play.layer for play in playbook.plays)) == list(Layer)
    assert {check for play in playbook.plays for check in ids(play)} >= LOOKING
    gates = {play.gate for play in playbook.plays}
    assert gates == ({Gate.NONE} if name == "maintenance" else {Gate.HOST})


def test_what_is_not_said_has_its_default() -> None:
    play = only_play("{layer: library, checks: [library.env]}")
    assert play == Play(
        name="library",
        layer=Layer.LIBRARY,
        checks=(Entry(check="library.env", position=Position("p.yaml", 3, 31)),),
        position=Position("p.yaml", 3, 5),
    )
    assert (play.hosts, play.gate, play.suspects) == ("all", Gate.HOST, Suspects.EXCLUDE)


def test_every_key_reaches_its_place() -> None:
    playbook = load(HERE / "right" / "all-keys.yaml", FOUND)
    look, wire, library, runtime, application = playbook.plays
    assert (playbook.name, playbook.forks, *playbook.allow) == ("incident", 32, "load")
    assert ids(look) == ["physical.nic-firmware", "physical.nic-mtu", "physical.pfc-enabled"]
    assert (wire.name, wire.hosts, wire.forks) == ("wire", "gpu:!storage", 8)
    assert (wire.serial, wire.max_fail) == (Count(25, True), Count(10, True))
    assert wire.suspects is Suspects.INCLUDE
    assert (library.gate, application.gate) == (Gate.FLEET, Gate.NONE)
    assert [entry.retries for entry in runtime.checks] == [0, 1]
    assert application.checks[0].severity is Severity.ADVISORY
    assert [waiver.check for waiver in playbook.waivers] == ["physical.nic-firmware", "library.*"]


def test_the_nearest_threshold_and_timeout_win_and_say_where_they_were_set() -> None:
    playbook = load(HERE / "right" / "all-keys.yaml", FOUND)
    look, wire, _, runtime, _ = playbook.plays
    firmware, mtu, pfc = look.checks
    assert params(firmware) == {}  # the share that is set is another check's
    assert params(mtu) == {"share": 1.0}
    assert str(mtu.params["share"].origin) == f"{HERE}/right/all-keys.yaml:9"
    assert params(wire.checks[0]) == {"from_mib": 16, "network_ratio": 0.8}
    bound, step = runtime.checks
    assert (params(bound), params(step)) == ({}, {"steps": 7})
    assert str(step.params["steps"].origin).endswith("all-keys.yaml:37")
    assert [entry.timeout_s for entry in (pfc, *wire.checks, bound)] == [20, 300, 20]


def test_a_threshold_takes_the_type_of_each_check_that_has_it() -> None:
    text = "{layer: physical, checks: [physical.*], thresholds: {share: 1, floor_bytes: 9e3}}"
    values = {entry.check: params(entry) for entry in only_play(text).checks}
    assert values["physical.nic-mtu"] == {"share": 1.0, "floor_bytes": 9000}
    assert type(values["physical.nic-mtu"]["floor_bytes"]) is int
    assert type(values["physical.nic-firmware"]["share"]) is float


def test_all_of_a_layer_leaves_out_what_is_named_beside_it_and_what_loads() -> None:
    play = only_play(
        "{layer: physical, checks: [physical.*, {check: physical.nic-firmware, retries: 2}]}"
    )
    assert [(entry.check, entry.retries) for entry in play.checks] == [
        ("physical.nic-mtu", 0),
        ("physical.pfc-enabled", 0),
        ("physical.nic-firmware", 2),
    ]


def test_what_is_said_of_all_is_said_of_each() -> None:
    play = only_play(
        "{layer: physical, checks: [{check: physical.*, severity: advisory, retries: 1}]}"
    )
    assert len(play.checks) == 3
    assert {(entry.severity, entry.retries) for entry in play.checks} == {(Severity.ADVISORY, 1)}


def test_conditions_of_play_and_entry_must_all_hold() -> None:
    play = only_play(
        "{layer: library, when: {group: gpu}, checks: "
        "[{check: library.env, when: {var: {rack: 7}}}]}"
    )
    (entry,) = play.checks
    machine = Machine("h")
    for groups, rack, reason in (
        (("gpu",), 7, None),
        (("ib",), 7, "when group is gpu"),
        (("gpu",), 8, "when var rack is 7"),
    ):
        host = Host("h", variables={"rack": rack}, groups=groups)
        assert entry.not_applicable(host, machine, machine) == reason


def test_loading_wants_the_permission_of_check_playbook_and_operator() -> None:
    load_it = next(one.check for one in FOUND if one.id == "physical.collective-pairs")
    look = next(one.check for one in FOUND if one.id == "physical.nic-mtu")
    allows = load(HERE / "right" / "all-keys.yaml", FOUND)
    forbids = load(HERE / "right" / "least.yaml", FOUND)
    assert allows.not_permitted(load_it, ["load"]) is None
    assert allows.not_permitted(load_it, []) == "needs --allow load"
    assert forbids.not_permitted(load_it, ["load"]) == "needs --allow load"
    assert forbids.not_permitted(look, []) is None


def test_only_the_first_twenty_problems_are_told() -> None:
    checks = ", ".join(f"physical.no-{number}" for number in range(30))
    with pytest.raises(PlaybookError) as caught:
        only_play(f"{{layer: physical, checks: [{checks}]}}")
    assert len(caught.value.problems) == 20
    assert "physical.no-0'" in caught.value.problems[0]


def test_thousands_of_problems_are_given_up_soon() -> None:
    # A nearest word costs time: a hostile file must not ask for 50,000 of them.
    checks = ", ".join(["physical.nope"] * 50_000)
    with pytest.raises(PlaybookError):
        only_play(f"{{layer: physical, checks: [{checks}]}}")


@given(st.text(max_size=80) | st.text(alphabet="name:plys[]{}-*&!x \n\t", max_size=80))
def test_any_text_is_a_playbook_or_a_playbook_error(text: str) -> None:
    with contextlib.suppress(PlaybookError):
        parse(text, "p.yaml", FOUND)


# --- by name ------------------------------------------------------------------------------------


def test_a_name_means_a_file_here_then_one_of_the_site_then_a_bundled_one(tmp_path: Path) -> None:
    bundled = bundled_folder("playbooks")
    for name in ("incident", "incident.yaml"):
        assert locate(Path(name), cwd=tmp_path) == bundled / "incident.yaml"
    assert locate(None, cwd=tmp_path) == bundled / "default.yaml"
    (tmp_path / "incident").mkdir()  # a folder is no playbook
    assert locate(Path("incident"), cwd=tmp_path) == bundled / "incident.yaml"
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks" / "incident.yml").touch()
    assert locate(Path("incident"), cwd=tmp_path) == Path("playbooks/incident.yml")
    (tmp_path / "incident.yaml").touch()
    assert locate(Path("incident.yaml"), cwd=tmp_path) == Path("incident.yaml")


@pytest.mark.parametrize("name", ["playbooks/nightly.yaml", "incidents", "x" * 300])
def test_what_is_not_there_says_which_are_bundled(name: str, tmp_path: Path) -> None:
    with pytest.raises(PlaybookError, match="bundled: default, incident, maintenance"):
        load(locate(Path(name), cwd=tmp_path), FOUND)


@pytest.mark.parametrize("name", ["Jenkinsfile", "gitlab-ci.yml"])
def test_the_lines_for_a_ci_server_run_where_there_is_only_an_inventory(
    name: str, tmp_path: Path
) -> None:
    """Word for word, in a site's repository."""
    text = (Path(__file__).parents[1] / "docs" / name).read_text()
    script = re.search(r"script: '''(.*?)'''|script:\n    - (.*?)\n", text, re.DOTALL)
    assert script
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory" / "prod.yaml").write_text("gpu: {hosts: {gpu-01: }}\n")
    done = subprocess.run(
        [
            "/bin/sh",
            "-c",
            f"commcheck() {{ '{sys.executable}' -m commcheck \"$@\" --dry-run; }}\n"
            + (script[1] or script[2]),
        ],
        cwd=tmp_path,
        env={**os.environ, "HOSTS": "all", "LOAD": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "contacts nobody" in done.stdout
