"""Names of hosts, groups, runs and hooks that a shell, a page or a terminal would take for more."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree, html

from tests.chaos.test_run_folders import call

__all__ = ["call"]

Call = Callable[..., tuple[int, str, str]]

ALLOWED = (
    *("$(touch${IFS}owned)", "`touch${IFS}owned`", "a;touch${IFS}owned", "a'b", 'a"b', "a|b&c"),
    *("<script>alert(1)<b>x", "]]>", "{{7*7}}", "%h", "=HYPERLINK(1)", "a#b", "~root", "${IFS}"),
)
REFUSED = (
    *("../../owned", "..", "a/b", "a\\b", "-oProxyCommand=x", "a b", "a\nb", "a\x00b", "@all"),
    *("\x1b]0;owned\x07", "a\u202eb", "a\u200bb", "a\u2028b", "\ue000", "x" * 201, ""),
)


def inventory(folder: Path, *, hosts: tuple[str, ...] = (), groups: tuple[str, ...] = ()) -> Path:
    """In JSON: YAML itself refuses some of these."""
    at = {"ansible_host": "127.0.0.1", "ansible_port": 9}
    file = folder / "hosts.json"
    children: dict[str, object] = {group: {"hosts": {"ok": {}}} for group in groups}
    told = {"hosts": {"ok": at, **dict.fromkeys(hosts, at)}, "children": children}
    file.write_text(json.dumps({"all": told}))
    return file


@pytest.mark.slow
def test_odd_names_are_text_wherever_they_stand(tmp_path: Path, call: Call) -> None:
    """Nobody answers, so every host is in every report. What is printed to be pasted is quoted."""
    file = inventory(tmp_path, hosts=ALLOWED, groups=ALLOWED)
    (tmp_path / "scontrol").write_text('#!/bin/sh\nfor each; do printf "%s\\n" "$each"; done\n')
    (tmp_path / "scontrol").chmod(0o755)
    drain = "scontrol update nodename={hosts} reason={reason}"
    given = ("run", "-i", file, "--connect-timeout", 1, "-q", "--strict", "--drain-command", drain)
    code, out, _ = call(*given)
    assert code in (1, 3)
    [run] = (tmp_path / "reports").glob("2*")
    told = json.loads((run / "results.json").read_bytes())
    assert set(told["run"]["hosts"]) == {"ok", *ALLOWED}
    page = html.fromstring((run / "report.html").read_bytes())
    assert "<script>alert(1)<b>x" in page.text_content()
    assert all("alert(1)<b>" not in (each.text or "") for each in page.iter("script", "b"))
    for report in (run / "junit").iterdir():
        names = etree.parse(report).xpath("//testcase/@classname")
        assert any("<script>alert(1)<b>x" in name for name in names)
    for line in out.splitlines():
        if line.lstrip().startswith("scontrol"):
            subprocess.run(
                ["bash", "-c", line], cwd=tmp_path, env={"PATH": f"{tmp_path}:/bin"}, check=True
            )
            assert shlex.split(line)[0] == "scontrol"
    assert not list(tmp_path.rglob("*owned*"))
    assert {each.name for each in tmp_path.iterdir()} == {"hosts.json", "scontrol", "reports"}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_names_that_cannot_be_told_or_kept_are_refused(
    name: str, tmp_path: Path, call: Call
) -> None:
    for file in (inventory(tmp_path, hosts=(name,)), inventory(tmp_path, groups=(name,))):
        code, _, err = call("list", "hosts", "-i", file)
        assert code == 2, err
        assert len(err.splitlines()) == 1
        assert not set(err.rstrip("\n")) & set("\x00\x07\x1b\u200b\u202e\u2028\ue000")


ODD = (
    "../../../etc",
    "/etc/passwd/x",
    "a\x1b[2Jb\x07",
    "a\u202eb",
    "$(touch owned)",
    "%s{0}",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    "words",
    [
        *(["report", "NAME"], ["judge", "NAME"], ["merge", "NAME", "NAME"], ["diff", "NAME"]),
        *(["run", "--resume", "NAME"], ["run", "--again", "NAME"], ["explain", "NAME"]),
        *(["run", "-i", "a,", "--baseline", "NAME"], ["run", "-i", "a,", "--notify", "NAME"]),
        *(["run", "-i", "a,", "-l", "NAME"], ["run", "-i", "a,", "-t", "NAME"]),
        *(["read", "NAME", "NAME"], ["run", "-i", "NAME", "--dry-run"], ["schema", "NAME"]),
        *(["demo", "--fault", "NAME"], ["analyze", "log", "NAME"], ["analyze", "trace", "NAME"]),
        *(["analyze", "metrics", "--url", "NAME"], ["run", "-i", "a,", "--executor", "NAME"]),
        *(["analyze", "log", "ray:NAME"], ["run", "-i", "slurm:NAME", "--dry-run"]),
    ],
    ids=lambda words: "-".join(words),
)
def test_a_name_that_names_nothing_is_told_in_one_line(
    words: list[str], name: str, tmp_path: Path, call: Call
) -> None:
    code, out, err = call(*(word.replace("NAME", name) for word in words))
    assert code == 2 or (words[:2] == ["analyze", "log"] and code == 3), err
    assert len(err.splitlines()) <= 4, err
    assert not set(out + err) & set("\x07\x1b\u202e")
    assert not list(tmp_path.rglob("owned"))
