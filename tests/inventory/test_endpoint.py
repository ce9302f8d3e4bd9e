"""Connection variables to an endpoint, and every value that is refused, with its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.errors import InventoryError
from commcheck.inventory.declared import Opaque
from commcheck.inventory.endpoint import Endpoint, endpoint, with_given
from commcheck.inventory.load import load
from commcheck.inventory.ssh_arguments import Hop
from commcheck.model import Host, Origin

PIN = "SHA256:" + "aB3+/" * 8 + "xyz"


def host(**variables: object) -> Host:
    origins = {name: Origin(f"prod.yaml:{line}") for line, name in enumerate(variables, 2)}
    return Host("gpu-01", variables, origins, origin=Origin("prod.yaml:1"))


PLAIN = Endpoint(address="gpu-01")


@pytest.mark.parametrize(
    ("variables", "changes"),
    [
        ({}, {}),
        ({"ansible_host": "192.0.2.1"}, {"address": "192.0.2.1"}),
        ({"ansible_ssh_host": "old"}, {"address": "old"}),
        ({"ansible_ssh_host": "old", "ansible_host": "new"}, {"address": "new"}),
        ({"ansible_host": "2001:db8::1"}, {"address": "2001:db8::1"}),
        ({"ansible_host": "root@192.0.2.1"}, {"address": "192.0.2.1", "user": "root"}),
        ({"ansible_host": "root@-oX=y"}, {"address": "root@-oX=y"}),
        ({"ansible_host": "root@gpu", "ansible_user": "joe"}, {"address": "gpu", "user": "joe"}),
        (
            {"ansible_host": "root@gpu", "ansible_ssh_extra_args": "-l joe"},
            {"address": "gpu", "user": "joe"},
        ),
        ({"ansible_port": 2222}, {"port": 2222}),
        ({"ansible_port": "2222"}, {"port": 2222}),
        ({"ansible_ssh_port": 22}, {"port": 22}),
        ({"ansible_user": "sre"}, {"user": "sre"}),
        ({"ansible_ssh_user": "sre"}, {"user": "sre"}),
        ({"ansible_user": 1001}, {"user": "1001"}),
        ({"ansible_user": None, "ansible_port": ""}, {}),
        ({"ansible_ssh_private_key_file": "~/k"}, {"key_files": ("~/k",)}),
        ({"ansible_private_key_file": "/k a"}, {"key_files": ("/k a",)}),
        ({"ansible_connection": "local"}, {"kind": "local"}),
        ({"ansible_connection": "ssh"}, {}),
        ({"ansible_connection": "ansible.netcommon.paramiko"}, {}),
        ({"ansible_connection": "smart"}, {}),
        ({"ansible_become": True}, {"become": True}),
        ({"ansible_become": "yes", "ansible_become_user": "root"}, {"become": True}),
        ({"ansible_become": "yes", "ansible_become_user": "op"}, {}),
        ({"ansible_become": "yes", "ansible_sudo_user": "op"}, {}),
        ({"ansible_become": False}, {}),
        ({"ansible_host_key_checking": False}, {"host_keys": "insecure"}),
        ({"ansible_ssh_host_key_checking": "true"}, {"host_keys": "strict"}),
        ({"ansible_python_interpreter": "{{ x | y }}", "ansible_become_password": "secret"}, {}),
        ({"commcheck_host_key": PIN}, {"pinned_key": PIN}),
        ({"commcheck_host_key": PIN + "="}, {"pinned_key": PIN}),
        ({"commcheck_ssh_agent": True}, {"use_agent": True}),
        ({"commcheck_ssh_look_for_keys": "yes"}, {"look_for_keys": True}),
        ({"commcheck_password_env": "FLEET_PW"}, {"password_env": "FLEET_PW"}),
        ({"commcheck_path": ["/opt/a", "/usr/local/*/bin"]},
         {"path": ("/opt/a", "/usr/local/*/bin")}),
        ({"commcheck_path": "/opt/a:/opt/b"}, {"path": ("/opt/a", "/opt/b")}),
        ({"ansible_ssh_common_args": "-J bastion"}, {"jumps": (Hop("bastion"),)}),
        ({"ansible_ssh_common_args": "-Jme@b1:22,b2"},
         {"jumps": (Hop("b1", 22, "me"), Hop("b2"))}),
        ({"ansible_ssh_common_args": "-o ProxyJump=a@[2001:db8::1]:2200"},
         {"jumps": (Hop("2001:db8::1", 2200, "a"),)}),
        ({"ansible_ssh_common_args": "-J ssh://u@b:1"}, {"jumps": (Hop("b", 1, "u"),)}),
        ({"ansible_ssh_common_args": "-J 2001:db8::1"}, {"jumps": (Hop("2001:db8::1"),)}),
        ({"ansible_ssh_common_args": "-J none"}, {"jumps": ()}),
        ({"ansible_ssh_common_args": "-o ProxyCommand='ssh -W %h:%p -q b'"},
         {"proxy_command": "ssh -W %h:%p -q b"}),
        ({"ansible_ssh_common_args": "-oStrictHostKeyChecking=no"}, {"host_keys": "insecure"}),
        ({"ansible_ssh_common_args": "-o 'StrictHostKeyChecking accept-new'"},
         {"host_keys": "accept-new"}),
        ({"ansible_ssh_common_args": "-o stricthostkeychecking=yes"}, {"host_keys": "strict"}),
        ({"ansible_ssh_common_args": "-o UserKnownHostsFile=/dev/null"},
         {"known_hosts": ("/dev/null",)}),
        ({"ansible_ssh_common_args": "-o HostKeyAlias=rack-7"}, {"host_key_alias": "rack-7"}),
        ({"ansible_ssh_common_args": "-C -o ControlMaster=auto -o ControlPersist=60s"}, {}),
        ({"ansible_ssh_common_args": "-A -vvv -tt -Cq -o ForwardAgent=yes"}, {}),
        ({"ansible_ssh_common_args": "-o HostKeyAlgorithms=+ssh-rsa -oCiphers=+aes128-cbc "
          "-o PubkeyAcceptedKeyTypes=+ssh-rsa -o PreferredAuthentications=publickey -J b"},
         {"jumps": (Hop("b"),)}),
        ({"ansible_ssh_extra_args": "-i ~/.ssh/id -p 2200 -l ops"},
         {"key_files": ("~/.ssh/id",), "port": 2200, "user": "ops"}),
        ({"ansible_ssh_extra_args": "-l ops -p 1", "ansible_user": "me", "ansible_port": 2},
         {"user": "me", "port": 2}),
        ({"ansible_ssh_common_args": "-J b", "ansible_ssh_extra_args": "-i k"},
         {"jumps": (Hop("b"),), "key_files": ("k",)}),
        # Of several values ssh takes the first, but for keys.
        ({"ansible_ssh_args": "-o StrictHostKeyChecking=no -p 1 -i k -l a",
          "ansible_ssh_common_args": "-o StrictHostKeyChecking=yes -o Port=2 -i m -l b"},
         {"host_keys": "insecure", "port": 1, "key_files": ("k", "m"), "user": "a"}),
        ({"ansible_ssh_args": "-J a", "ansible_ssh_common_args": "-o ProxyCommand='nc b'"},
         {"jumps": (Hop("a"),)}),
        ({"ansible_ssh_args": "-o ProxyCommand=none", "ansible_ssh_common_args": "-J b"},
         {"proxy_command": ""}),
        ({"ansible_ssh_args": "-J none -J b", "ansible_ssh_common_args": "-o ProxyCommand='nc c'"},
         {"jumps": (), "proxy_command": "nc c"}),
        ({"ansible_ssh_args": "-o UserKnownHostsFile=/u -o GlobalKnownHostsFile=/g",
          "ansible_ssh_extra_args": "-o UserKnownHostsFile=/v"}, {"known_hosts": ("/u", "/g")}),
    ],
)  # fmt: skip
def test_what_the_inventory_says(variables: dict[str, object], changes: dict[str, object]) -> None:
    assert endpoint(host(**variables)) == replace(PLAIN, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("ansible_port", "ssh", "'ssh' is no port number [connection]"),
        ("ansible_port", True, "'True' is no port number [connection]"),
        ("ansible_port", 70000, "'70000' is no port number (1 to 65535) [connection]"),
        ("ansible_port", 22.0, "'22.0' is no port number [connection]"),
        ("ansible_host", "a b", "'a b' is no name or address [connection]"),
        ("ansible_host", "-oProxyCommand=x",
         "'-oProxyCommand=x' is no name or address [connection]"),
        ("ansible_user", ["a"], '"[\'a\']" is no name or address [connection]'),
        ("ansible_connection", "winrm",
         "'winrm' is a connection that commcheck has not; it has ssh, local and kubectl: "
         "leave such hosts out with --limit [connection]"),
        ("ansible_connection", "docker",
         "'docker' is a connection that commcheck has not; it has ssh, local and kubectl: "
         "leave such hosts out with --limit [connection]"),
        ("ansible_become", "maybe", "'maybe' is neither true nor false [connection]"),
        ("ansible_password", "hunter2",
         "is not used: a password does not belong in a file; use a key, or name an environment "
         "variable that holds the password with commcheck_password_env [password]"),
        ("ansible_ssh_pass", 1234,
         "is not used: a password does not belong in a file; use a key, or name an environment "
         "variable that holds the password with commcheck_password_env [password]"),
        ("ansible_ssh_common_args", "-J b -W x",
         "'-W' is an ssh argument that commcheck does not know [ssh-argument]"),
        ("ansible_ssh_common_args", "bastion",
         "'bastion' is an ssh argument that commcheck does not know [ssh-argument]"),
        ("ansible_ssh_common_args", "-o PermitLocalCommand=yes",
         "'-o PermitLocalCommand=yes' is an ssh option that commcheck does not know "
         "[ssh-argument]"),
        ("ansible_ssh_common_args", "-o StrictHostKeyChecking=ask",
         "'-o StrictHostKeyChecking=ask' is none of yes, accept-new and no [ssh-argument]"),
        ("ansible_ssh_common_args", "-F x",
         "'-F x' is not followed for some hosts alone; name the file for all hosts: "
         "--ssh-config x [ssh-argument]"),
        ("ansible_ssh_common_args", "-J", "'-J' lacks its value [ssh-argument]"),
        ("ansible_ssh_common_args", "-p x", "'-p x' is no port number [ssh-argument]"),
        ("ansible_ssh_common_args", "-J b:x",
         "'-J b:x' is no jump host; wanted [user@]host[:port] [ssh-argument]"),
        ("ansible_ssh_common_args", "-J 'x", '"-J \'x" no closing quotation [ssh-argument]'),
        ("commcheck_host_key", "MD5:aa",
         "'MD5:aa' is no fingerprint; ssh-keygen -lf prints one: SHA256:... [connection]"),
        ("commcheck_password_env", "my pw",
         "'my pw' is no name of an environment variable [connection]"),
        ("commcheck_path", ["bin"], '"[\'bin\']" is no list of absolute folders [connection]'),
        ("commcheck_path", "/a;rm", "'/a;rm' is no list of absolute folders [connection]"),
    ],
)  # fmt: skip
def test_what_is_refused(name: str, value: object, text: str) -> None:
    with pytest.raises(InventoryError) as caught:
        endpoint(host(**{name: value}))
    told = f"{name}{'' if text.startswith('is ') else ':'} {text}"
    assert caught.value.problems == (f"prod.yaml:2: error: {told}",)
    assert "hunter2" not in str(caught.value)


def test_templates_and_vaults_matter_only_where_the_host_is_visited(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text(
        "all:\n"
        "  vars:\n"
        "    domain: example.com\n"
        "    ansible_host: '{{ inventory_hostname }}.{{ domain }}'\n"
        "    ansible_port: '{{ port }}'\n"
        "    port: 2222\n"
        "  hosts:\n"
        "    good:\n"
        "    vaulted: {ansible_password: !vault x}\n"
        "    filtered:\n"
        "      ansible_user: \"{{ lookup('pipe', 'id') }}\"\n"
        "    computed:\n"
        '      ansible_host: "{{ 7 * 7 }}"\n'
        "    called:\n"
        "      ansible_host: \"{{ ''.__class__ }}\"\n"
    )
    good, vaulted, filtered, *others = load(["hosts.yml"], cwd=tmp_path).hosts
    for each in others:
        with pytest.raises(InventoryError, match=r"ansible_host: it is more than a plain"):
            endpoint(each)
    assert endpoint(good) == Endpoint(address="good.example.com", port=2222)
    with pytest.raises(
        InventoryError, match=r"hosts\.yml:9: error: ansible_password is not used: it is vault"
    ):
        endpoint(vaulted)
    with pytest.raises(
        InventoryError, match=r"hosts\.yml:11: error: ansible_user: it is more than a plain"
    ):
        endpoint(filtered)


UNREAD = Opaque("it is vaulted", "vault")


def test_what_the_command_line_says_stands_in_for_what_cannot_be_read() -> None:
    one = host(ansible_user=UNREAD, ansible_ssh_private_key_file=UNREAD, ansible_port=UNREAD)
    same = with_given(one, {"become"})
    assert same is one
    with pytest.raises(InventoryError, match="key_file: it is vaulted"):
        endpoint(with_given(replace(one, variables={**one.variables, "ansible_port": 1}), {"user"}))
    with pytest.raises(InventoryError, match="ansible_port: it is vaulted"):
        endpoint(with_given(one, {"key_files", "user"}))
    read = host(ansible_user="sre", ansible_ssh_private_key_file="k")
    assert endpoint(with_given(read, {"key_files", "user"})) == replace(
        PLAIN, user="sre", key_files=("k",)
    )


@pytest.mark.parametrize(
    "arguments",
    ["-F ssh.cfg -J b", "-J b -Fssh.cfg", "-J b -F 'my ssh.cfg' -A", UNREAD],
)
def test_a_named_configuration_stands_for_the_one_in_the_arguments(arguments: str) -> None:
    given = with_given(host(ansible_ssh_common_args=arguments), {"ssh_config"})
    jumps = None if arguments is UNREAD else (Hop("b"),)
    assert endpoint(given) == replace(PLAIN, jumps=jumps)


def test_the_configuration_of_a_proxy_command_is_its_own() -> None:
    arguments = "-o ProxyCommand='ssh -F jump.cfg -W %h:%p b' -F ssh.cfg"
    given = with_given(host(ansible_ssh_common_args=arguments), {"ssh_config"})
    assert endpoint(given) == replace(PLAIN, proxy_command="ssh -F jump.cfg -W %h:%p b")
