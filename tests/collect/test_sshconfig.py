"""What ~/.ssh/config, inventory and command line make of a host together."""

from __future__ import annotations

import getpass
import os
import shutil
from pathlib import Path

import pytest

from commcheck.collect.hostkeys import Mode
from commcheck.collect.sshconfig import Options, SshConfig
from commcheck.collect.target import Defaults, Target, parse_jumps, resolve
from commcheck.errors import Unreachable
from commcheck.inventory.endpoint import endpoint
from commcheck.inventory.ssh_arguments import Hop
from commcheck.model import Host

needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh")


def config(folder: Path, text: str) -> SshConfig:
    path = folder / "config"
    path.write_text(text)
    return SshConfig(path)


PLAIN = """
# of the site
Host gpu-* !gpu-09
    HostName %h.fabric.example
    User=ops
    Port 2222
    IdentityFile {key}
    UserKnownHostsFile /etc/kh1 /etc/kh2
    StrictHostKeyChecking accept-new
    HostKeyAlias pod-a
Host far
    ProxyJump ops@jump:2200,second
Host odd
    ProxyCommand nc -X connect %h %p
    StrictHostKeyChecking no
"""


@pytest.mark.parametrize(
    "head", ["", pytest.param("Match all\n", marks=needs_ssh)], ids=["parser", "ssh -G"]
)
def test_both_ways_of_reading_agree(tmp_path: Path, head: str) -> None:
    key = tmp_path / "id"
    read = config(tmp_path, head + PLAIN.replace("{key}", str(key)))
    assert read.lookup("gpu-01") == Options(
        hostname="gpu-01.fabric.example",
        port=2222,
        user="ops",
        identity_files=(key,),
        known_hosts=(Path("/etc/kh1"), Path("/etc/kh2")),
        host_keys="accept-new",
        host_key_alias="pod-a",
    )
    assert read.lookup("gpu-09") == Options()
    assert read.lookup("far").proxy_jump == "ops@jump:2200,second"
    assert read.lookup("odd").proxy_command == "nc -X connect %h %p"
    assert read.lookup("odd").host_keys == "insecure"


@needs_ssh
def test_include_is_followed_and_match_exec_runs_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    (tmp_path / "more").write_text("Host gpu-01\n  User included\n")
    read = config(
        tmp_path,
        f'Match host gpu-01 exec "touch {trace}"\n  Port 99\nHost *\nInclude {tmp_path}/more\n',
    )
    assert read.lookup("gpu-01") == Options(user="included")
    assert not trace.exists()


@needs_ssh
def test_a_file_ssh_refuses_is_an_error_of_the_host(tmp_path: Path) -> None:
    read = config(tmp_path, "Match all\nNoSuchOption yes\n")
    with pytest.raises(Unreachable, match="config") as caught:
        read.lookup("gpu-01")
    assert caught.value.code == "ssh-config"


@needs_ssh
def test_what_ssh_says_need_be_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"Match all\nUserKnownHostsFile /home/ren\xe9/known\n")
    (known,) = SshConfig(path).lookup("gpu-01").known_hosts
    assert os.fsencode(known) == b"/home/ren\xe9/known"


def test_no_option_of_ssh_hides_in_a_name(tmp_path: Path) -> None:
    read = config(tmp_path, "Match all\n")
    with pytest.raises(Unreachable, match="no host name"):
        read.lookup("-oProxyCommand=touch x")


def test_a_missing_file_sets_nothing(tmp_path: Path) -> None:
    assert SshConfig(tmp_path / "none").lookup("gpu-01") == Options()


@pytest.mark.parametrize(
    ("text", "hops"),
    [
        ("jump", (Hop("jump"),)),
        ("ops@jump:2200, b", (Hop("jump", 2200, "ops"), Hop("b"))),
        ("ssh://ops@jump:22/", (Hop("jump", 22, "ops"),)),
        ("[fe80::1]:22", (Hop("fe80::1", 22),)),
        ("fe80::1", (Hop("fe80::1"),)),
    ],
)
def test_parse_jumps(text: str, hops: tuple[Hop, ...]) -> None:
    assert parse_jumps(text) == hops


@pytest.mark.parametrize("text", ["", "a,,b", "a:b"])
def test_parse_jumps_refuses(text: str) -> None:
    with pytest.raises(Unreachable):
        parse_jumps(text)


# --- all together -------------------------------------------------------------------------------


def target(
    folder: Path, text: str, variables: dict[str, object], name: str = "gpu-01", **more: object
) -> Target:
    defaults = Defaults(home=folder, **more)  # type: ignore[arg-type] # passed on
    return resolve(endpoint(Host(name, variables)), config(folder, text), defaults)


def test_silence_everywhere(tmp_path: Path) -> None:
    found = target(tmp_path, "", {})
    assert (found.address, found.port, found.user) == ("gpu-01", 22, getpass.getuser())
    assert found.wanted.mode is Mode.STRICT
    assert found.wanted.files[0] == tmp_path / ".ssh" / "known_hosts"
    assert Path("/etc/ssh/ssh_known_hosts") in found.wanted.files
    assert (found.agent, found.look_for_keys, found.key_files, found.jumps) == (
        False,
        False,
        (),
        (),
    )


def test_inventory_beats_command_line_beats_file(tmp_path: Path) -> None:
    text = "Host 10.0.0.1\n  User file\n  Port 1\n"
    host: dict[str, object] = {"ansible_host": "10.0.0.1"}
    assert target(tmp_path, text, host).user == "file"
    assert target(tmp_path, text, host, user="line").user == "line"
    both = target(tmp_path, text, {**host, "ansible_user": "inv", "ansible_port": 7}, user="line")
    assert (both.address, both.user, both.port) == ("10.0.0.1", "inv", 7)


def test_the_command_line_alone_decides_host_key_mode(tmp_path: Path) -> None:
    loose: dict[str, object] = {"ansible_ssh_common_args": "-o StrictHostKeyChecking=no"}
    assert target(tmp_path, "", loose).wanted.mode is Mode.INSECURE
    assert target(tmp_path, "", loose, host_keys="strict").wanted.mode is Mode.STRICT


def test_a_pin_is_of_the_host_not_of_its_jump_host(tmp_path: Path) -> None:
    pin = "SHA256:" + "A" * 43
    variables: dict[str, object] = {
        "commcheck_host_key": pin,
        "ansible_ssh_common_args": "-J ops@jump:2200",
    }
    found = target(tmp_path, "", variables, host_keys="pinned")
    assert (found.wanted.mode, found.wanted.pinned) == (Mode.PINNED, (pin,))
    (jump,) = found.jumps
    assert (jump.address, jump.port, jump.user) == ("jump", 2200, "ops")
    assert jump.wanted.mode is Mode.STRICT
    assert jump.wanted.names[0] == "[jump]:2200"
    assert found.peer.via == "ops@jump:2200"


def test_an_alias_for_the_key_is_of_the_host_not_of_its_jump_host(tmp_path: Path) -> None:
    text = "Host gpu-01\n  HostKeyAlias of-the-file\n"
    found = target(tmp_path, text, {"ansible_ssh_common_args": "-o HostKeyAlias=Rack-7 -J jump"})
    assert found.wanted.names == ("rack-7",)
    assert found.jumps[0].wanted.names == ("jump",)


def test_jump_hosts_follow_the_file_and_do_not_jump_over_themselves(tmp_path: Path) -> None:
    text = (
        "Host jump\n  HostName 192.0.2.1\n  User ops\n"
        "Host outer\n  ProxyJump none\n"
        "Host inner\n  ProxyJump outer\n"
        "Host *\n  ProxyJump jump\n"
    )
    (jump,) = target(tmp_path, text, {}).jumps
    assert (jump.address, jump.user, jump.jumps) == ("192.0.2.1", "ops", ())
    chain = target(tmp_path, text, {"ansible_ssh_common_args": "-J inner"}).jumps
    assert [each.address for each in chain] == ["outer", "inner"]
    assert chain[1].jumps == (chain[0],)


@pytest.mark.parametrize(
    ("arguments", "way"),
    [
        ("-J none", "nc far 22"),
        ("-o ProxyJump=none -o ProxyCommand='nc near'", "nc near"),
        ("-o ProxyCommand=none", ""),
    ],
)
def test_what_the_inventory_switches_off_stays_off(
    tmp_path: Path, arguments: str, way: str
) -> None:
    """As for ssh: without a jump host a proxy command still counts, and none of it is neither."""
    for text in ("ProxyJump bastion\n", "ProxyCommand nc far 22\n"):
        found = target(tmp_path, f"Host *\n  {text}", {"ansible_ssh_common_args": arguments})
        assert not found.jumps
        assert found.proxy_command == (way if "Command" in text or "near" in way else "")


def test_jump_hosts_in_a_circle_are_refused(tmp_path: Path) -> None:
    text = "Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n"
    with pytest.raises(Unreachable, match="jump hosts"):
        target(tmp_path, text, {"ansible_ssh_common_args": "-J a"})


def test_proxy_command_gets_final_values_and_safe_names_only(tmp_path: Path) -> None:
    variables: dict[str, object] = {
        "ansible_port": 7,
        "ansible_ssh_common_args": "-o 'ProxyCommand=nc %h %p %r %%'",
        "ansible_user": "ops",
    }
    text = "Host gpu-01\n  HostName 10.0.0.1\n"
    assert target(tmp_path, text, variables).proxy_command == "nc 10.0.0.1 7 ops %"
    with pytest.raises(Unreachable, match="ProxyCommand"):
        target(tmp_path, text, variables, name="a;reboot")


def test_a_pipe_sets_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config")
    assert SshConfig(tmp_path / "config").lookup("gpu-01") == Options()


def test_a_found_file_that_others_may_write_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("Host *\n    ProxyCommand steal %h\n")
    path.chmod(0o666)
    assert SshConfig(path).lookup("gpu-01").proxy_command == "steal %h"  # it was named
    with pytest.raises(Unreachable, match="everybody may write") as refused:
        SshConfig(path, found=True).lookup("gpu-01")
    assert refused.value.code == "ssh-config"
    path.chmod(0o600)
    assert SshConfig(path, found=True).lookup("gpu-01").proxy_command == "steal %h"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_found_file_of_another_user_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("Host *\n    User eve\n")
    os.chown(path, 12345, -1)
    with pytest.raises(Unreachable, match="another user"):
        SshConfig(path, found=True).lookup("gpu-01")
