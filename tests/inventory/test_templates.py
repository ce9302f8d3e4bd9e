"""The forms of templates that are resolved, and that nothing else is: no template is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from commcheck.errors import InventoryError
from commcheck.inventory.declared import Opaque
from commcheck.inventory.endpoint import endpoint
from commcheck.inventory.load import load
from commcheck.inventory.templates import Scope, resolve

VARIABLES: dict[str, object] = {
    "user": "ops",
    "empty": "",
    "port": 2222,
    "domain": "{{ site }}.example.com",
    "site": "a1",
    "loop": "{{ loop }}",
    "flag": False,
}
SCOPE = Scope(VARIABLES.__getitem__, {"HOME": "/home/ops", "ODD": "{{ user }}", "NONE": ""})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("{{ user }}", "ops"),
        ("{{port}}", 2222),
        ("gpu.{{ domain }}", "gpu.a1.example.com"),
        ("{{ lookup('env', 'HOME') }}/.ssh/id", "/home/ops/.ssh/id"),
        ('{{ lookup("env","HOME") }}', "/home/ops"),
        ("{{ lookup('ansible.builtin.env', 'HOME') }}", "/home/ops"),
        ("{{ lookup('env', 'GONE', default='x y') }}", "x y"),
        ("{{ lookup('env', 'GONE') | default('me') }}", "me"),
        ("{{ lookup('env', 'NONE') | default('me', true) }}", "me"),
        ("{{ ssh_port | default(22) }}", 22),
        ("{{ port | default(22) }}", 2222),
        ("{{ gone|d('x') }}", "x"),
        ("{{ gone | default(user) }}", "ops"),
        ("{{ gone | default(also_gone) | default('x') }}", "x"),
        ("{{ gone | default(lookup('env', 'HOME')) }}", "/home/ops"),
        ("{{ empty | default('x') }}", ""),
        ("{{ empty | default('x', true) }}", "x"),
        ("{{ gone | default(omit) }}", None),
        ("{{ gone | default(true) }}", True),
        ("{{ flag }}", False),
        ("a {{ gone | default('}}') }} b", "a }} b"),
        (["{{ user }}", {"a": "{{ port }}"}], ["ops", {"a": 2222}]),
    ],
)
def test_what_is_resolved(text: object, value: object) -> None:
    assert resolve(text, SCOPE) == value


def test_what_was_filled_in_is_not_read_once_more() -> None:
    assert resolve("{{ lookup('env', 'ODD') }}", SCOPE) == "{{ user }}"
    assert resolve("a {{ lookup('env', 'ODD') }}", SCOPE) == "a {{ user }}"


@pytest.mark.parametrize(
    "text",
    [
        "{{ 7 * 7 }}",
        "{{ ''.__class__ }}",
        "{{ user.upper() }}",
        "{{ user | upper }}",
        "{{ lookup('pipe', 'id') }}",
        "{{ lookup('file', '/etc/passwd') }}",
        "{{ lookup('env', user) }}",
        "{{ lookup('env', 'HOME').upper() }}",
        "{{ lookup('env', 'HOME', 'ODD') }}",
        "{{ query('env', 'HOME') }}",
        "{{ gone | default(lookup('pipe', 'id')) }}",
        "{{ gone | default('x') | upper }}",
        "{{ gone | default('x', true, 1) }}",
        "{{ 'a' if user else 'b' }}",
        "{{ hostvars['a']['b'] }}",
        "{{ user }}{% if user %}x{% endif %}",
        "{% raw %}x{% endraw %}",
        "{{ {{ user }} }}",
        "{{ user",
        "{{ }}",
        "{# a note #}",
    ],
)
def test_nothing_else_is(text: str) -> None:
    value = resolve(text, SCOPE)
    assert isinstance(value, Opaque)
    assert "which is all that commcheck resolves" in value.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ gone }}", "it refers to 'gone', which the inventory does not set"),
        ("{{ loop }}", "its template leads in a circle: loop -> loop"),
        ("{{ lookup('env', 'GONE') }}/x", "the environment variable GONE is not set here"),
        ("x{{ gone | default(omit) }}", "nothing is to stand for 'gone | default(omit)' in it"),
        ("{{ lookup('env', 'HF_TOKEN') }}", "HF_TOKEN is a secret by its name"),
    ],
)
def test_what_cannot_be_filled_says_why(text: str, why: str) -> None:
    value = resolve(text, SCOPE)
    assert isinstance(value, Opaque)
    assert why in value.why


def test_the_variables_that_ansible_sets(tmp_path: Path) -> None:
    (tmp_path / "inv").mkdir()
    (tmp_path / "inv" / "hosts.yml").write_text(
        "all:\n"
        "  vars:\n"
        "    ansible_ssh_private_key_file: '{{ inventory_dir }}/keys/id'\n"
        "    commcheck_peer_group: '{{ inventory_file }} {{ inventory_hostname_short }}'\n"
        "    ansible_ssh_common_args: \"-i {{ lookup('env', 'KEY') | default('k') }}\"\n"
        "    ansible_port: '{{ ssh_port | default(2200) }}'\n"
        "  children: {gpu: {hosts: {gpu-01.example.com: {}}}}\n"
    )
    (host,) = load(["inv/hosts.yml"], cwd=tmp_path, environment={}).hosts
    assert endpoint(host).key_files == (f"{tmp_path}/inv/keys/id", "k")
    assert endpoint(host).port == 2200
    said = f"{tmp_path}/inv/hosts.yml gpu-01"
    assert host.variables["commcheck_peer_group"] == said
    (host,) = load(["inv"], cwd=tmp_path, environment={"KEY": "/k"}).hosts
    assert endpoint(host).key_files == (f"{tmp_path}/inv/keys/id", "/k")


def test_a_password_is_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text(
        "all: {hosts: {a: {ansible_password: \"{{ lookup('env', 'FLEET') }}\"}}}\n"
    )
    (host,) = load(["hosts.yml"], cwd=tmp_path, environment={"FLEET": "hush"}).hosts
    assert "hush" not in repr(host)
    with pytest.raises(InventoryError, match="a template fills it; use a key, or name an env"):
        endpoint(host)
