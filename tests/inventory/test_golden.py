"""The same inventories, read by commcheck and by Ansible: hosts, groups, variables, patterns.

Ansible is asked in one child process for the whole corpus, and through its commands for a part.
It walks the groups below the second level in the order of memory addresses, so no inventory here
has two parents with children on one level.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from commcheck.errors import InventoryError
from commcheck.inventory.load import Inventory, load
from commcheck.inventory.patterns import matching

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ansible") is None, reason="ansible-core is not installed"
)

ASK_ANSIBLE = r"""
import datetime, json, os, sys
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.manager import VariableManager

answers = {}
for case in json.load(sys.stdin):
    os.chdir(case["cwd"])
    loader = DataLoader()
    loader.set_basedir(case["cwd"])
    manager = InventoryManager(loader=loader, sources=case["sources"])
    variables = VariableManager(loader=loader, inventory=manager)
    inside = set(variables.get_vars(include_hostvars=False)) | {
        "inventory_dir", "inventory_file", "inventory_hostname", "inventory_hostname_short",
        "group_names", "ansible_facts",
    }
    def of(host):
        merged = variables.get_vars(host=host, include_hostvars=False, stage="all")
        return {key: merged[key] for key in merged if key not in inside}
    def names(pattern):
        try:
            return [host.name for host in manager.get_hosts(pattern)]
        except Exception as error:
            return [type(error).__name__]
    answers[case["name"]] = {
        "all": names("all"),
        "groups": {g: [h.name for h in group.get_hosts()] for g, group in manager.groups.items()},
        "chains": {
            host.name: [
                group.name
                for group in sorted(
                    host.get_groups(), key=lambda g: (g.depth, g.priority, g.name)
                )
            ]
            for host in manager.get_hosts("all")
        },
        "variables": {host.name: of(host) for host in manager.get_hosts("all")},
        "patterns": {pattern: names(pattern) for pattern in case["patterns"]},
    }
json.dump(answers, sys.stdout, default=lambda value: value.isoformat())
"""

Files = Mapping[str, str]

PRECEDENCE: Files = {
    "hosts.ini": """\
[all:vars]
where=inline-all
only_all=1
shared=inline-all

[gpu]
node[01:03] where=host
node02 shared=host

[rack1]
node01
node03

[zone]
node01
node02
node03

[fabric:children]
gpu

[gpu:vars]
where=inline-gpu
deep=gpu
shared=inline-gpu
kept={'a': 1, 'b': 2}

[rack1:vars]
deep=rack1
sibling=rack1

[zone:vars]
sibling=zone

[fabric:vars]
deep=fabric
kept={'a': 9}
""",
    "group_vars/all.yml": "shared: file-all\nfile_all: yes\n",
    "group_vars/gpu/20-b.yml": "pick: b\nsecond: true\n",
    "group_vars/gpu/10-a.yaml": "pick: a\nfirst: 0755\n",
    "group_vars/gpu/nested/x": "inner: 1\n",
    "group_vars/gpu/.hidden.yml": "hidden: 1\n",
    "group_vars/gpu/old.yml~": "backup: 1\n",
    "group_vars/gpu/notes.txt": "notes: 1\n",
    "group_vars/gpu.yml": "shadowed: 1\n",
    "group_vars/fabric.json": '{"deep": "file-fabric", "json": [1, 2.5, null]}\n',
    "host_vars/node03": "where: file-host\nnull_value:\n",
    "host_vars/node02.yml": "# nothing\n",
}

CORPUS: dict[str, tuple[list[str], Files]] = {
    "yaml": (
        ["hosts.yml"],
        {
            "hosts.yml": """\
all:
  hosts:
    lone:
    jump.example: {ansible_host: 192.0.2.9}
  vars: {a: 1, flag: off, when: 2026-11-29, ratio: .5, big: 1_000, hex: 0x10, base: 10:20}
  children:
    gpu:
      hosts:
        node[01:05:2]: {ansible_port: 2222}
        node03: {x: [1, two, {three: 3}]}
        node-[a:c]:
      vars:
        text: "{{ not_ours | default('x') }}"
      children:
        deep:
          hosts:
            node09:
            lone2:
    npu:
      hosts: solo
    empty:
    ungrouped:
      hosts:
        explicit:
    other:
      hosts:
        node01:
""",
        },
    ),
    "yaml-many-roots": (
        ["hosts.yaml"],
        {
            "hosts.yaml": """\
zeta:
  hosts: {z1: , shared: {v: zeta}}
alpha:
  hosts: {a1: , shared: {v: alpha, w: 1}}
  children: {zeta: }
alone:
  vars: {nobody: 1}
""",
        },
    ),
    "yaml-merge-keys": (
        ["hosts.yml"],
        {
            "hosts.yml": """\
all:
  vars:
    base: &base {mtu: 9000, qos: {prio: 3}}
    more: &more {mtu: 4200, ecn: true}
  children:
    gpu:
      hosts:
        a: {<<: *base, mtu: 1500}
        b: {<<: [*base, *more]}
        c: &c {<<: *more}
        d: *c
""",
        },
    ),
    "yaml-ports-and-addresses": (
        ["hosts.yml"],
        {
            "hosts.yml": """\
all:
  hosts:
    web.example:2200:
    10.0.0.[1:3]:
    "[2001:db8::1]:2222":
    2001:db8::2:
    "fe80::[1:3]":
    "rack[1:2]-node[01:02].pod":
    under_score:
    "10.0.0.2:77":
""",
        },
    ),
    "ini": (
        ["hosts"],
        {
            "hosts": """\
# a comment
lone ansible_host=10.0.0.1   # and one behind
; another
[gpu]   # comment
node[01:03] x=1 y='a b' z="['q', 2]" w=2.20 t=True n=None e= s=a=b c=0x1f
node03 x=2 quote='"quoted"' tuple=(1,2) bad="[1," under=1_0 zip=0123
node04:2222
node04:3333 late=1

[npu:children]
later
gpu

[gpu:vars]
spaced = some words here
number = 5 # read as python
hash = text # stays
dict = {"a": [1, 2]}
empty =
equals = a = b

[later]
npu[8:10]
npu[b:d]x

[npu:vars]
platform=ascend
[unused]
""",
        },
    ),
    "ini-children-order": (
        ["hosts.ini"],
        {
            "hosts.ini": """\
[top:children]
b
a
c
[c]
c1
shared
[a]
a1
shared
[b]
b1
[first]
f1
c1
""",
        },
    ),
    "ini-priority": (
        ["hosts.ini"],
        {
            "hosts.ini": """\
[b]
node
[z]
node
[m]
node
[b:vars]
ansible_group_priority=9
v=b
[z:vars]
v=z
u=z
[m:vars]
ansible_group_priority=-1
u=m
w=m
""",
        },
    ),
    "precedence": (["hosts.ini"], PRECEDENCE),
    "folder": (
        ["site"],
        {
            "site/20-gpu.ini": "[gpu]\nnode01 v=ini\n[both:children]\ngpu\nnpu\n[npu:vars]\nn=1\n",
            "site/10-npu.yml": "npu: {hosts: {npu01: {v: yaml}, node01: {v: yaml, y: 1}}}\n",
            "site/30-more/hosts": "[gpu]\nnode02\n",
            "site/README.md": "# not an inventory\n",
            "site/ansible.cfg": "[defaults]\n",
            "site/hosts.orig": "[broken\n",
            "site/.hidden": "[broken\n",
            "site/group_vars/gpu.yml": "gv: 1\n",
            "site/30-more/group_vars/gpu.yml": "never: 1\n",
        },
    ),
    "two-sources": (
        ["one/hosts.ini", "two/hosts.yml"],
        {
            "one/hosts.ini": "[gpu]\na v=1\nb\n",
            "one/group_vars/gpu.yml": "g: one\nkeep: one\n",
            "two/hosts.yml": "gpu: {hosts: {c: , a: {v: 2}}, vars: {i: 2}}\n",
            "two/group_vars/gpu.yml": "g: two\n",
            "two/group_vars/all": "g: all\n",
        },
    ),
    "inline": (["gpu-03,gpu-07:2222, 10.0.0.1,"], {}),
    "inline-and-file": (["x,y,", "hosts.ini"], {"hosts.ini": "[g]\ny v=1\nz\n"}),
}

PATTERNS: dict[str, list[str]] = {
    "yaml": [
        *("all", "*", "gpu", "node01", "gpu:npu", "npu,gpu", "gpu:!node03", "gpu:&other"),
        *("!gpu", "&gpu", "!npu:&gpu", "node*", "node0?", "node0[23456]*", "~node-[ab]", "gpu[0]"),
        *("gpu[-1]", "gpu[1:2]", "gpu[1:]", "gpu[0:0]", "gpu[2:0]", "gpu[5:99]", "g*:!lone2"),
        *(
            "jump.example",
            "~.*e$",
            "empty",
            "all:!all",
            "ungrouped",
            "ungr*",
            "jump.*",
            "node0[!1]",
        ),
        *("other:gpu", "gpu:!deep:&~node0", "npu , gpu", "lone,!lone", "all[2:4]", "deep[1]"),
    ],
    "yaml-ports-and-addresses": ["2001:db8::2", "10.0.0.1:10.0.0.3", "10.0.0.1,fe80::2", "rack1*"],
    "precedence": ["gpu:!node03:&rack1", "rack1", "zone:!rack1", "fabric[0:1]", "node0[!3]:&rack1"],
}


def build(root: Path, files: Files) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    root.mkdir(exist_ok=True)
    return root


@pytest.fixture(scope="module")
def ansible(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Ansible says of the whole corpus, by case; files are laid out below ``cwd``."""
    base = tmp_path_factory.mktemp("golden")
    cases = []
    for name, (sources, files) in CORPUS.items():
        cwd = build(base / name, files)
        patterns = PATTERNS.get(name, [])
        cases.append({"name": name, "cwd": str(cwd), "sources": sources, "patterns": patterns})
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ASK_ANSIBLE],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
        cwd=base,
    )
    assert child.returncode == 0, child.stderr
    answers: dict[str, Any] = json.loads(child.stdout)
    for case in cases:
        answers[str(case["name"])]["cwd"] = case["cwd"]
    return answers


def ours(ansible: dict[str, Any], name: str) -> Inventory:
    return load(CORPUS[name][0], cwd=Path(ansible[name]["cwd"]))


@pytest.mark.parametrize("name", CORPUS)
def test_host_order_and_groups_are_ansibles(ansible: dict[str, Any], name: str) -> None:
    inventory = ours(ansible, name)
    assert [host.name for host in inventory.hosts] == ansible[name]["all"]
    groups = {group: list(hosts) for group, hosts in inventory.groups.items()}
    assert groups == ansible[name]["groups"]
    chains = {host.name: ["all", *host.groups] for host in inventory.hosts}
    assert chains == ansible[name]["chains"]


@pytest.mark.parametrize("name", CORPUS)
def test_variables_are_ansibles(ansible: dict[str, Any], name: str) -> None:
    inventory = ours(ansible, name)
    merged = {host.name: dict(host.variables) for host in inventory.hosts}
    assert json.loads(json.dumps(merged)) == ansible[name]["variables"]


@pytest.mark.parametrize(
    ("name", "pattern"), [(name, each) for name, group in PATTERNS.items() for each in group]
)
def test_patterns_select_what_ansible_selects(
    ansible: dict[str, Any], name: str, pattern: str
) -> None:
    inventory = ours(ansible, name)
    chosen = set(ansible[name]["patterns"][pattern])
    wanted = [host.name for host in inventory.hosts if host.name in chosen]
    assert [host.name for host in matching(inventory, pattern, cwd=Path())] == wanted


@pytest.mark.parametrize("pattern", ["gpu[9]", "gpu[-99]"])
def test_a_member_that_is_not_there_is_an_error_here_as_there(
    ansible: dict[str, Any], pattern: str
) -> None:
    with pytest.raises(InventoryError, match="member that is not there: it has"):
        matching(ours(ansible, "yaml"), pattern, cwd=Path())


def command(name: str, *arguments: str, cwd: Path) -> str:
    """The output of one of Ansible's own commands."""
    program = Path(sys.executable).with_name(name)
    if not program.exists():
        pytest.skip(f"{name} is not installed")
    child = subprocess.run(
        [str(program), *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    return child.stdout


def test_the_example_inventory_reads_as_ansible_inventory_lists_it() -> None:
    root = Path(__file__).parents[2]
    inventory = load(["inventory/prod.yaml"], cwd=root)
    listed = json.loads(
        command("ansible-inventory", "-i", "inventory/prod.yaml", "--list", cwd=root)
    )
    assert {host.name: dict(host.variables) for host in inventory.hosts} == listed["_meta"][
        "hostvars"
    ]
    for group in ("gpu-roce", "gpu-ib", "ascend"):
        assert inventory.groups[group]
    shown = command("ansible", "all", "-i", "inventory/prod.yaml", "--list-hosts", cwd=root)
    assert [line.strip() for line in shown.splitlines()[1:]] == [h.name for h in inventory.hosts]
    assert inventory.warnings == ()
