"""What ranks see around them: the script run by a real sh, on a made-up /proc."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats import pci_tree
from commcheck.nccl.job_files import SCRIPT, JobFiles, NamedFile, Rank, parse

TOPOLOGY = """\
<system version="1">
  <cpu numaid="0" affinity="ffff" arch="x86_64">
    <pci busid="0000:18:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="16">
      <nic><net name="mlx5_0" dev="0" speed="400000" gdr="1"/></nic>
    </pci>
    <pci busid="0000:19:00.0" class="0x030200"><gpu dev="0" sm="90" rank="0" gdr="1"/></pci>
  </cpu>
</system>
"""


def process(
    proc: Path, pid: int, variables: Mapping[str, str], *, locked: str = "unlimited", caps: int = 0
) -> Path:
    """A process that uses GPUs, with a root of its own; its folder."""
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "fd" / "9").symlink_to("/dev/nvidia-uvm")
    environ = "".join(f"{name}={value}\0" for name, value in variables.items())
    (folder / "environ").write_text(environ)
    (folder / "limits").write_text(f"Max locked memory         {locked}   unlimited   bytes     \n")
    (folder / "status").write_text(f"Name:\tpython\nCapEff:\t{caps:016x}\nNSpid:\t{pid}\n")
    for name in ("root", "cwd"):
        (folder / name).mkdir()
    return folder


def ask(proc: Path) -> JobFiles:
    done = subprocess.run(
        ["sh", "-c", SCRIPT, "sh", f"{proc}/"], capture_output=True, text=True, check=False
    )
    return parse(Output(done.stdout, done.stderr, done.returncode))


def test_a_topology_file_is_looked_at_where_the_rank_sees_it(tmp_path: Path) -> None:
    given = {"NCCL_TOPO_FILE": "/opt/a topo.xml", "NCCL_GRAPH_FILE": "graph.xml"}
    for pid in (41, 42):
        folder = process(tmp_path, pid, given)
        (folder / "root" / "opt").mkdir()
        (folder / "root" / "opt" / "a topo.xml").write_text(TOPOLOGY)
    (tmp_path / "41" / "cwd" / "graph.xml").write_text('<graphs version="1">\n<graph id="0"')
    (tmp_path / "7").mkdir()  # no user of a GPU
    found = ask(tmp_path)
    whole = NamedFile(
        "NCCL_TOPO_FILE", "/opt/a topo.xml", "read", "system", "1", True,
        ("0000:18:00.0", "0000:19:00.0"),
    )  # fmt: skip
    assert [file for file in found.files if file.variable == "NCCL_TOPO_FILE"] == [whole]
    graphs = {file.state: file for file in found.files if file.variable == "NCCL_GRAPH_FILE"}
    assert set(graphs) == {"read", "absent"}
    assert (graphs["read"].kind, graphs["read"].whole) == ("graphs", False)
    assert [rank.pid for rank in found.ranks] == [41, 42]


def test_no_text_of_a_file_leaves_the_host(tmp_path: Path) -> None:
    folder = process(tmp_path, 41, {"NCCL_TOPO_FILE": "/shadow", "NCCL_GRAPH_FILE": "/fifo"})
    (folder / "root" / "shadow").write_text("root:secret:1\n")
    (folder / "root" / "fifo").mkdir()
    done = subprocess.run(
        ["sh", "-c", SCRIPT, "sh", f"{tmp_path}/"], capture_output=True, text=True, check=True
    )
    assert "secret" not in done.stdout
    found = parse(Output(done.stdout))
    assert {(file.variable, file.state, file.kind) for file in found.files} == {
        ("NCCL_TOPO_FILE", "read", ""),
        ("NCCL_GRAPH_FILE", "unreadable", ""),
    }


def test_a_value_of_several_lines_names_no_second_file(tmp_path: Path) -> None:
    process(tmp_path, 41, {"OTHER": "x\nNCCL_TOPO_FILE=/etc/passwd", "NCCL_TOPO_FILE": "/a\n/b"})
    assert [(file.path, file.state) for file in ask(tmp_path).files] == [("/a /b", "absent")]


def test_limits_count_unless_the_process_is_exempt(tmp_path: Path) -> None:
    process(tmp_path, 41, {}, locked="65536")
    process(tmp_path, 42, {}, locked="65536", caps=1 << 14)
    process(tmp_path, 43, {})
    (process(tmp_path, 44, {}, locked="65536") / "status").unlink()
    assert ask(tmp_path).ranks == (
        Rank(41, locked_bytes=65536),
        Rank(42, locked_bytes=-1),
        Rank(43, locked_bytes=-1),
        Rank(44),
    )


def test_a_topology_of_the_image(tmp_path: Path) -> None:
    folder = process(tmp_path, 41, {}) / "root" / "var" / "run" / "nvidia-topologyd"
    folder.mkdir(parents=True)
    (folder / "virtualTopology.xml").write_text(TOPOLOGY)
    (rank,) = ask(tmp_path).ranks
    assert rank.virtual_topology


def test_where_nothing_runs_nothing_is_said(tmp_path: Path) -> None:
    assert ask(tmp_path) == JobFiles()


@pytest.mark.parametrize("output", [Output("", rc=2), Output("pid 41\n"), Output("x", rc=1)])
def test_what_did_not_come_to_its_end_is_refused(output: Output) -> None:
    with pytest.raises(CommandFailed):
        parse(output)


def test_the_way_to_every_device() -> None:
    text = (
        "0000:18:00.0=../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:18:00.0\n"
        "0001:00:00.0=../../../devices/pci0001:00/0001:00:00.0\n"
    )
    tree = pci_tree.parse(Output(text))
    assert (tree.has("0000:18:00.0"), tree.has("0000:99:00.0")) == (True, False)
    assert tree.hangs_on_root("0000:18:00.0") is False
    assert tree.hangs_on_root("0001:00:00.0") is True
    assert tree.hangs_on_root("0000:99:00.0") is None
    with pytest.raises(ParseError):
        pci_tree.parse(Output("\n"))
