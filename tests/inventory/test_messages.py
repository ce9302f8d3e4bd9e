"""Every message of the inventory: one line, with the file, line and column it is about."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from commcheck.errors import InventoryError
from commcheck.inventory.load import Inventory, load
from commcheck.inventory.patterns import select


def write(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def problems(root: Path, *sources: str) -> list[str]:
    with pytest.raises(InventoryError) as caught:
        load(sources, cwd=root)
    return list(caught.value.problems)


# The file's ending decides the format: y.yml is YAML, i.ini is INI.
ERRORS: list[tuple[str, str | bytes, str]] = [
    ("y.yml", "", "y.yml:1:1: error: the inventory is empty [empty]"),
    ("y.yml", "# nothing\n", "y.yml:1:1: error: the inventory is empty [empty]"),
    ("y.yml", "{}", "y.yml:1:1: error: the inventory is empty [empty]"),
    ("i.ini", "\n\n", "i.ini:1:1: error: the inventory is empty [empty]"),
    (
        "y.yml",
        "- a\n- b\n",
        "y.yml:1:1: error: wanted groups, such as 'all:' with 'hosts:' below it [structure]",
    ),
    (
        "y.yml",
        "all:\n  hosts:\n    a: {x: 1, x: 2}\n",
        "y.yml:3:15: error: 'x' again (first on line 3) [duplicate-key]",
    ),
    (
        "y.yml",
        "all:\n  hosts:\n    a:\n    b:\n    a:\n",
        "y.yml:5:5: error: 'a' again (first on line 3) [duplicate-key]",
    ),
    ("y.yml", "all:\n\thosts:\n", "y.yml:2:1: error: a tab; YAML wants spaces here [tab]"),
    ("y.yml", "all:\n  hosts:\n \ta:\n", "y.yml:3:2: error: a tab; YAML wants spaces here [tab]"),
    (
        "y.yml",
        "all:\n  hosts: {a: 1\n",
        "y.yml:3:1: error: did not find expected ',' or '}' [yaml]",
    ),
    (
        "y.yml",
        "all: {hosts: {a: }}\n---\nb:\n",
        "y.yml:2:1: error: but found another document [yaml]",
    ),
    ("y.yml", "a: *b\n", "y.yml:1:4: error: found undefined alias [yaml]"),
    ("y.yml", "a: &b\n  children: *b\n", "y.yml:1:4: error: an alias that contains itself [alias]"),
    (
        "y.yml",
        "a: {vars: &x {y: [*x]}}\n",
        "y.yml:1:11: error: an alias that contains itself [alias]",
    ),
    (
        "y.yml",
        "all:\n  hosts: [a, b]\n",
        "y.yml:2:10: error: hosts of group 'all' is a list; wanted a mapping, "
        "one name with a colon a line [structure]",
    ),
    (
        "y.yml",
        "all:\n  vars: 5\n",
        "y.yml:2:9: error: vars of group 'all' is a plain value; wanted a mapping, "
        "one name: value a line [structure]",
    ),
    (
        "y.yml",
        "all:\n  hosts:\n    a: up\n",
        "y.yml:3:8: error: host 'a' has a plain value; its variables are a mapping below it "
        "[structure]",
    ),
    (
        "y.yml",
        "all:\n  hosts:\n    7:\n",
        "y.yml:3:5: error: the host name '7' is no text; quote it [name]",
    ),
    ("y.yml", "no: {}\n", "y.yml:1:1: error: the group name 'False' is no text; quote it [name]"),
    (
        "y.yml",
        "all: {hosts: {a: {5: 6}}}\n",
        "y.yml:1:19: error: the variable name '5' is no word [variable-name]",
    ),
    (
        "y.yml",
        "all: {hosts: {? [a] : b}}\n",
        "y.yml:1:17: error: a key must be a word, not a list or mapping [key]",
    ),
    (
        "y.yml",
        "all: {hosts: {a: {<<: 5}}}\n",
        "y.yml:1:23: error: '<<' wants a mapping, or a list of them [merge]",
    ),
    (
        "y.yml",
        "all:\n  hosts:\n    gpu[01:3]:\n",
        "y.yml:3:5: error: host 'gpu[01:3]' has the range [01:3]; with a leading zero both ends "
        "need one width [range]",
    ),
    (
        "y.yml",
        "all: {vars: {commcheck_nccl: 2.20}, hosts: {a: }}\n",
        "y.yml:1:30: error: commcheck_nccl: 2.20 is read as the number 2.2; if it is a text, "
        "quote it [number]",
    ),
    (
        "i.ini",
        "a commcheck_nccl=2.20\n",
        "i.ini:1:18: error: commcheck_nccl: 2.20 is read as the number 2.2; if it is a text, "
        "quote it [number]",
    ),
    (
        "y.yml",
        "all: {vars: {commcheck_rack: 010}, hosts: {a: }}\n",
        "y.yml:1:30: error: commcheck_rack: 010 is read as the number 8; if it is a text, quote "
        "it [number]",
    ),
    (
        "y.yml",
        "all:\n  vars:\n    commcheck_platform: gpu_roce\n  hosts: a\n",
        "y.yml:3:25: error: commcheck_platform is 'gpu_roce'; did you mean gpu-roce? [platform]",
    ),
    (
        "i.ini",
        "a commcheck_platform=x\n",
        "i.ini:1:22: error: commcheck_platform is 'x'; wanted one of gpu-roce, gpu-ib, gpu-efa, "
        "gpu-tcp, ascend, unknown [platform]",
    ),
    (
        "y.yml",
        "all: {hosts: {a: {commcheck_mtu: '{{ m | int }}'}}}\n",
        "y.yml:1:34: error: commcheck_mtu: it is more than a plain '{{ variable }}', "
        "lookup('env', 'NAME') and default(), which is all that commcheck resolves, so write the "
        "value out [template]",
    ),
    (
        "y.yml",
        "all: {hosts: {a: {commcheck_mtu: '{{ m }}'}}}\n",
        "y.yml:1:34: error: commcheck_mtu: it refers to 'm', which the inventory does not set "
        "[template]",
    ),
    (
        "y.yml",
        "all: {hosts: {a: {commcheck_mtu: '{{ m }}', m: '{{ n }}', n: '{{ m }}'}}}\n",
        "y.yml:1:34: error: commcheck_mtu: its template leads in a circle: commcheck_mtu -> m -> "
        "n -> m [template]",
    ),
    (
        "y.yml",
        "all: {hosts: {a: {commcheck_x: !vault abc}}}\n",
        "y.yml:1:32: error: commcheck_x: it is vaulted, and commcheck does not open vaults; write "
        "the value plainly, or keep it in ~/.ssh/config [vault]",
    ),
    (
        "y.yml",
        "all: {hosts: {a: {commcheck_x: [1, !mine abc]}}}\n",
        "y.yml:1:19: error: commcheck_x: it has the tag '!mine', which commcheck does not read "
        "[tag]",
    ),
    (
        "y.yml",
        "all: {hosts: {a.b: , a_b: }}\n",
        "y.yml:1:22: error: host 'a_b' would be a_b in JUnit, as host 'a.b' is; rename one [name]",
    ),
    (
        "y.yml",
        "all: {hosts: {../x: }}\n",
        "y.yml:1:15: error: host '../x' has a slash in its name [name]",
    ),
    ("y.yml", "all: {hosts: {'..': }}\n", "y.yml:1:15: error: host '..' has no real name [name]"),
    ("y.yml", "all: {hosts: {'@a': }}\n", "y.yml:1:15: error: host '@a' begins with '@' [name]"),
    ("i.ini", "-a\n", "i.ini:1:1: error: host '-a' begins with '-' [name]"),
    (
        "y.yml",
        'all: {hosts: {"a\\eb": }}\n',
        "y.yml:1:15: error: host 'a\\x1bb' has a blank or an invisible character in its name "
        "[name]",
    ),
    (
        "y.yml",
        "a: {children: {b: {children: {a: }}}}\n",
        "y.yml:1:16: error: group 'b' would be inside itself, by way of 'a' [group-loop]",
    ),
    (
        "i.ini",
        "[a:children]\na\n",
        "i.ini:2:1: error: group 'a' would be inside itself, by way of 'a' [group-loop]",
    ),
    (
        "i.ini",
        "[gpu]\na\n[all_gpu:children]\ngpus\n",
        "i.ini:4:1: error: [all_gpu:children] names the unknown group gpus; did you mean gpu? "
        "[group]",
    ),
    (
        "i.ini",
        "[gpu]\na\n[gpv:vars]\nx=1\n",
        "i.ini:3:1: error: [gpv:vars] is for the unknown group gpv; did you mean gpu? [group]",
    ),
    (
        "i.ini",
        "[gpu]\na\n[gpu:hots]\n",
        "i.ini:3:1: error: [gpu:hots]: wanted :children, :vars or nothing [section]",
    ),
    (
        "i.ini",
        "[g pu]\na\n",
        "i.ini:1:1: error: '[g pu]' is no section; is a blank in it? [section]",
    ),
    (
        "hosts",
        "192.0.2.7\tgpu-07 gpu-07.example  # rack 2\n",
        "hosts:1:1: error: a line of /etc/hosts; an inventory says gpu-07 ansible_host=192.0.2.7 "
        "[hosts-file]",
    ),
    ("i.ini", "[g]\n  a x\n", "i.ini:2:5: error: wanted name=value, found 'x' [variable]"),
    (
        "i.ini",
        "[g]\na\n[g:vars]\nnope\n",
        "i.ini:4:1: error: wanted name=value, found 'nope' [variable]",
    ),
    ("i.ini", "a x='1\n", 'i.ini:1:1: error: no closing quotation in "a x=\'1" [host-line]'),
    ("i.ini", "a x=1 x=2\n", "i.ini:1:7: error: 'x' again on this line [duplicate-key]"),
    (
        "i.ini",
        "all:\n",
        "i.ini:1:1: error: 'all:' is no host name; a YAML inventory is named .yml [name]",
    ),
    (
        "i.ini",
        "a[1:99999999]\n",
        "i.ini:1:1: error: host 'a[1:99999999]' stands for more than 65536 hosts [range]",
    ),
    (
        "i.ini",
        "[g]\na\n[g:vars]\nansible_group_priority=x\n",
        "i.ini:4:24: error: ansible_group_priority is 'x'; wanted a whole number [number]",
    ),
    ("y.yml", b"all:\n  x\xff\n", "y.yml:2:4: error: byte 0xff is not UTF-8 [encoding]"),
    (
        "y.yml",
        b"a\x00b",
        "y.yml:1:2: error: the control character '\\x00': no text file [binary]",
    ),
    (
        "i.ini",
        "a\nb x=\x1b[31m\n",
        "i.ini:2:5: error: the control character '\\x1b': no text file [binary]",
    ),
    (
        "y.yml",
        "$ANSIBLE_VAULT;1.1;AES256\n6162\n",
        "y.yml:1:1: error: the inventory is encrypted; decrypt it first: ansible-vault view "
        "[vault]",
    ),
    ("y.yml", "[" * 5000, "y.yml:1:1001: error: exceeded maximum nesting depth [yaml]"),
    (
        "y.yml",
        "all: {vars: {x: " + "[" * 200 + "]" * 200 + "}}",
        "y.yml:1:115: error: nested deeper than 100 levels [depth]",
    ),
]


@pytest.mark.parametrize(("name", "content", "line"), ERRORS)
def test_one_line_with_its_place(
    tmp_path: Path, name: str, content: str | bytes, line: str
) -> None:
    write(tmp_path, {name: content})
    assert problems(tmp_path, name) == [line]


def test_all_errors_of_all_files_are_shown_in_order(tmp_path: Path) -> None:
    lines = "".join(f"h{n:02} x=1 x=2\n" for n in range(30))
    write(tmp_path, {"b.ini": lines, "a.yml": "all: {hosts: {7: , 8: }}\n"})
    found = problems(tmp_path, "b.ini", "a.yml")
    assert found[:2] == [
        "a.yml:1:15: error: the host name '7' is no text; quote it [name]",
        "a.yml:1:20: error: the host name '8' is no text; quote it [name]",
    ]
    assert found[2:] == [
        f"b.ini:{n}:9: error: 'x' again on this line [duplicate-key]" for n in range(1, 21)
    ]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("i.ini", "a[1:3]\nb[1:4] x=1\n", "i.ini:2:1: error: host 'b[1:4]' makes"),
        ("y.yml", "all:\n  hosts:\n    a[1:3]:\n    b[1:4]: {x: 1}\n",
         "y.yml:4:5: error: host 'b[1:4]' makes"),
        ("a[1:3],b[1:8]", "", "-i:1:1: error: host 'b[1:8]' makes"),
    ],
)  # fmt: skip
def test_many_lines_of_many_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, line: str
) -> None:
    monkeypatch.setattr("commcheck.inventory.declared.MOST_OF_RANGES", 10)
    write(tmp_path, {name: text} if text else {})
    assert problems(tmp_path, name if text else f"{name},") == [
        f"{line} more than 10 hosts and settings in one file [range]"
    ]


def test_names_of_many_letters_on_many_hosts_end_soon(tmp_path: Path) -> None:
    """46,656 names of 600 letters, of which each is one too long."""
    write(tmp_path, {"i.ini": "q" * 550 + "[0:5]" * 6 + "\n"})
    began = time.process_time()
    assert len(problems(tmp_path, "i.ini")) <= 21
    assert time.process_time() - began < 3  # each letter was asked for its category: 10 s


def test_an_alias_bomb_ends_soon(tmp_path: Path) -> None:
    rows = ["a0: &a0 {x: 1}"]
    rows += [
        f"a{n}: &a{n} {{{', '.join(f'k{k}: *a{n - 1}' for k in range(10))}}}" for n in range(1, 12)
    ]
    text = "all:\n  hosts: h\n  vars:\n" + "".join(f"    {row}\n" for row in rows)
    write(tmp_path, {"y.yml": text})
    (line,) = problems(tmp_path, "y.yml")
    assert line.endswith("error: its aliases unfold to far too much [alias]")


@pytest.mark.parametrize(
    ("sources", "line"),
    [
        ([], "no inventory: name one with -i, or give hosts as -i gpu-01,gpu-02,"),
        (["a,", " "], "no inventory: name one with -i, or give hosts as -i gpu-01,gpu-02,"),
        (
            ["gpu-01"],
            "gpu-01:1:1: error: no such file; for a list of hosts end it with a comma: gpu-01, "
            "[file]",
        ),
        (["no/where.yml"], "no/where.yml:1:1: error: no such file [file]"),
        (["odd"], "odd:1:1: error: it holds a file with the name 'a\\x1bb' [name]"),
        (["empty"], "empty:1:1: error: no inventory in this folder [no-host]"),
        (["only.ini"], "only.ini: error: there is no host in the inventory [no-host]"),
        ([","], ",: error: there is no host in the inventory [no-host]"),
        (["big.yml"], "big.yml:1:1: error: larger than 16 MiB: no inventory [size]"),
        (["a[3:1],"], "-i:1:1: error: host 'a[3:1]' has the range [3:1], which begins after its "
         "end [range]"),
        (["a\0b"], "a\0b:1:1: error: no such file; for a list of hosts end it with a comma: a\0b, "
         "[file]"),
    ],
)  # fmt: skip
def test_a_source_that_gives_nothing(tmp_path: Path, sources: list[str], line: str) -> None:
    write(tmp_path, {"only.ini": "[g]\n", "empty/.gitkeep": "", "odd/a\x1bb": "h", "big.yml": ""})
    os.truncate(tmp_path / "big.yml", (16 << 20) + 1)
    assert problems(tmp_path, *sources) == [line]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    write(tmp_path, {"y.yml": "all:\n"})
    (tmp_path / "y.yml").chmod(0)
    assert problems(tmp_path, "y.yml") == [
        "y.yml:1:1: error: cannot be read: Permission denied [file]"
    ]


def test_what_only_warns(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "inv/hosts.yml": (
                "all:\n"
                "  vars: {nccl: 2.20, pw: !vault x, odd: !mine x, t: '{{ a | b }}'}\n"
                "  childs: {}\n"
                "  children:\n"
                "    gpu:\n"
                "      hosts: {gpu: , b: {commcheck_thresholds: {share: 0.80}}}\n"
                "plain: 5\n"
            ),
            "inv/group_vars/gpus.yml": "a: 1\n",
            "inv/group_vars/gpu/a.yml": "$ANSIBLE_VAULT;1.1;AES256\n62\n",
            "inv/group_vars/gpu.yml": "a: 1\n",
            "group_vars/all.yml": "a: 1\n",
        },
    )
    inventory = load(["inv/hosts.yml"], cwd=tmp_path)
    assert inventory.warnings == (
        "inv/group_vars/gpu.yml:1:1: warning: not read, as in Ansible: inv/group_vars/gpu comes "
        "first [shadowed]",
        "inv/group_vars/gpu/a.yml:1:1: warning: encrypted, its variables are not read [vault]",
        "inv/group_vars/gpus.yml:1:1: warning: there is no group 'gpus'; did you mean gpu? [group]",
        "inv/hosts.yml:2:16: warning: nccl: 2.20 is read as the number 2.2; if it is a text, "
        "quote it [number]",
        "inv/hosts.yml:3:3: warning: group 'all': 'childs' is ignored; a group has hosts, vars "
        "and children [structure]",
        "inv/hosts.yml:6:15: warning: 'gpu' is the name of a host and of a group; rename one "
        "[name]",
        "inv/hosts.yml:7:1: warning: 'plain' is no group: it has a plain value [structure]",
        "group_vars:1:1: warning: Ansible would read this folder of the current directory as "
        "well; commcheck reads only the one beside the inventory [group-vars]",
    )
    host = inventory.hosts[1]
    assert host.variables["pw"] == "(not read: vault)"
    assert host.variables["odd"] == "(not read: tag)"
    assert host.variables["t"] == "{{ a | b }}"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Inventory:
    root = tmp_path_factory.mktemp("small")
    write(root, {"i.ini": "[gpu]\nnode[01:03]\n[npu]\nnpu1\n[none]\n"})
    return load(["i.ini"], cwd=root)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("gpuu", "there is no host and no group 'gpuu'; did you mean gpu?"),
        ("NODE1", "there is no host and no group 'NODE1'; did you mean node01?"),
        ("gpu:!nod02", "there is no host and no group 'nod02'; did you mean node02?"),
        ("gpu:&zzz", "there is no host and no group 'zzz'"),
        ("x*", "the pattern 'x*' matches no host and no group"),
        ("gpu,~q", "the pattern '~q' matches no host and no group"),
        ("gpu:!gpu", "the pattern 'gpu:!gpu' selects no host"),
        ("none", "the pattern 'none' selects no host"),
        ("gpu:&npu", "the pattern 'gpu:&npu' selects no host"),
        ("", "the pattern '' is empty"),
        (" , ", "the pattern ' , ' is empty"),
        ("gpu[7]", "the pattern 'gpu[7]' asks for a member that is not there: it has 3, counted "
         "from 0"),
        ("~(", "the pattern '~(' is no regular expression: missing ), unterminated subpattern at "
         "position 0"),
        (
            "node[01:03]",
            "the pattern 'node[01:03]' matches no host and no group; [01:03] at the end of a "
            "pattern counts members of a group, and there is no group 'node': write "
            "node01,node02,node03",
        ),
        ("node[01,04]", "there is no host 'node04', of 'node[01,04]'"),
        ("gpu:!node[1,2]", "there is no host 'node1', of 'node[1,2]'"),
        ("@missing", "cannot read the limit file 'missing': No such file or directory"),
        ("@blank", "the limit file 'blank' names no host"),
        ("@bytes", "cannot read the limit file 'bytes': it is not UTF-8 text"),
        ("@big", "the limit file 'big' is larger than 1 MiB"),
    ],
)  # fmt: skip
def test_a_pattern_that_is_wrong(small: Inventory, tmp_path: Path, pattern: str, line: str) -> None:
    write(tmp_path, {"blank": "\n# nobody\n", "bytes": b"\xff", "big": "a" * (1 << 20) + "b"})
    with pytest.raises(InventoryError) as caught:
        select(small, pattern, cwd=tmp_path)
    assert caught.value.problems == (line,)


def test_a_limit_file_is_read_beside_the_current_directory(
    small: Inventory, tmp_path: Path
) -> None:
    write(tmp_path, {"again": "node03\n# done\nnpu1\n"})
    assert [host.name for host in select(small, "@again", cwd=tmp_path)] == ["node03", "npu1"]
    assert [host.name for host in select(small, "@again,!npu", cwd=tmp_path)] == ["node03"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("node[01,03]", ["node01", "node03"]),
        ("node[01-02],npu1", ["node01", "node02", "npu1"]),
        ("gpu:!node[02-03]", ["node01"]),
        ("@folded", ["node02", "node03", "npu1"]),
        ("gpu[0-1]", ["node01", "node02"]),  # of a group it counts members, as in Ansible
    ],
)
def test_hosts_as_a_report_folds_them(
    small: Inventory, tmp_path: Path, pattern: str, names: list[str]
) -> None:
    write(tmp_path, {"folded": "node[02-03]\nnpu1\n"})
    assert [host.name for host in select(small, pattern, cwd=tmp_path)] == names


def test_hosts_on_the_command_line_as_a_report_folds_them(tmp_path: Path) -> None:
    found = load(["n[07,09-10],x1:2222,m[01:02],"], cwd=tmp_path)
    assert [host.name for host in found.hosts] == ["n07", "n09", "n10", "x1", "m01", "m02"]
    with pytest.raises(InventoryError, match="begins after its end"):
        load(["n[9-7],"], cwd=tmp_path)
