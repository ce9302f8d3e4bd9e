"""From sysfs to subjects: the runner reads a folder laid out as the kernel's is."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.collect.base import Frame, Frames
from commcheck.collect.local import LocalVisitor
from commcheck.collect.session import Session
from commcheck.errors import ParseError
from commcheck.model import Host, Machine
from commcheck.subjects import machine
from tests.collect.shells import SHELLS, use_shell

BASE = "hostname gpu-03\nkernel Linux 5.15.0\nboot_id b\nuid 1000\nroot untried\n"
SWITCH = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0"
GPU = f"accelerator 0x10de {SWITCH}/0000:17:00.0/0000:19:00.0\n"
IB = {"link_layer": "InfiniBand"}
FAR = "/sys/devices/pci0000:00/0000:00:1c.0"


def host(**variables: object) -> Host:
    return Host("gpu-03", variables)


def port(hca: str, path: str, number: int = 1, /, **facts: str) -> str:
    lines = {"path": path, "driver": "mlx5_core", "link_layer": "Ethernet"}
    lines |= {"state": "4: ACTIVE", "phys_state": "5: LinkUp"} | facts
    return f"port {hca} {number}\n" + "".join(f"{key} {text}\n" for key, text in lines.items())


def near(slot: int, function: int = 0) -> str:
    return f"{SWITCH}/0000:17:0{slot}.0/0000:{20 + slot}:00.{function}"


def far(slot: int, function: int = 0) -> str:
    return f"{FAR}/0000:{slot:02x}:00.{function}"


def names(rails: object) -> list[str]:
    return [rail.label for rail in rails]  # type: ignore[attr-defined]


def read(text: str, **variables: object) -> Machine:
    return machine(host(**variables), BASE + text)


# --- which ports are rails -----------------------------------------------------------------------


def test_ports_under_an_accelerators_root_port_are_rails_dark_or_not() -> None:
    found = read(
        GPU
        + port("mlx5_10", near(2), netdev="eth10")
        + port("mlx5_9", near(1), netdev="eth9", state="1: DOWN", phys_state="3: Disabled")
        + port("mlx5_0", far(3), netdev="eth0")
    )
    assert names(found.rails) == ["mlx5_9", "mlx5_10"]
    assert [rail.index for rail in found.rails] == [0, 1]
    assert [rail.fabric for rail in found.rails] == [True, True]
    assert [(rail.state, rail.phys_state) for rail in found.rails] == [
        ("DOWN", "Disabled"),
        ("ACTIVE", "LinkUp"),
    ]
    assert names(found.other_ports) == ["mlx5_0"]
    assert found.platform == "gpu-roce"


def test_the_same_host_bridge_alone_is_not_near() -> None:
    found = read(GPU + port("mlx5_0", "/sys/devices/pci0000:15/0000:15:02.0/0000:30:00.0"))
    assert [rail.fabric for rail in found.rails] == [None]


def test_a_dark_second_port_of_a_card_is_no_rail() -> None:
    second = {"state": "1: DOWN", "phys_state": "3: Disabled"}
    found = read(GPU + port("mlx5_0", near(1)) + port("mlx5_1", near(1, function=1), **second))
    assert (names(found.rails), names(found.other_ports)) == (["mlx5_0"], ["mlx5_1"])
    both = read(
        GPU + port("mlx5_0", near(1), **second) + port("mlx5_1", near(1, function=1), **second)
    )
    assert names(both.rails) == ["mlx5_0", "mlx5_1"]
    ports = read(GPU + port("mlx4_0", near(1)) + port("mlx4_0", near(1), 2, **second))
    assert (names(ports.rails), names(ports.other_ports)) == (["mlx4_0"], ["mlx4_0/2"])


def test_without_a_near_port_all_but_management_may_be_rails() -> None:
    routes = "ssh 10.0.0.3\ndefault bond0\nnet4 eth4 0000000A 000000FF\nlower bond0 eth5\n"
    found = read(
        routes
        + port("mlx5_0", far(1), netdev="eth1")
        + port("mlx5_4", far(4), netdev="eth4")
        + port("mlx5_5", far(5), netdev="eth5")
        + port("rxe0", "", netdev="eth1", soft="1").replace("path \n", "")
    )
    assert names(found.rails) == ["mlx5_0"]
    assert found.rails[0].fabric is None
    assert names(found.other_ports) == ["mlx5_4", "mlx5_5", "rxe0"]


def test_the_bridge_to_the_nvswitches_is_no_rail() -> None:
    """HGX B200: ConnectX-7 functions by which NVLSM reaches the switches, in InfiniBand mode."""
    bridge = "".join(
        port(f"mlx5_{8 + at}", far(9, function=at), nvswitch="1", **IB) for at in (0, 1, 2, 3)
    )
    gpu = f"accelerator 0x10de {FAR}/0000:19:00.0\n".replace("1c.0", "1d.0")
    found = read(f"{gpu}{port('mlx5_0', far(1), netdev='eth1')}{bridge}")
    assert (found.platform, names(found.rails)) == ("gpu-roce", ["mlx5_0"])
    assert names(found.other_ports) == ["mlx5_8", "mlx5_9", "mlx5_10", "mlx5_11"]
    beside = port("mlx5_8", near(2), nvswitch="1", **IB)
    assert names(read(GPU + port("mlx5_0", near(1), **IB) + beside).rails) == ["mlx5_0"]


def test_the_session_over_ipv6_shows_the_management_port() -> None:
    text = "ssh fd00::3\nnet6 eth1 fd000000000000000000000000000003\n"
    found = read(
        text + port("mlx5_0", far(1), netdev="eth1") + port("mlx5_1", far(2), netdev="eth2")
    )
    assert names(found.rails) == ["mlx5_1"]


def test_declared_rails_stand_in_their_order_and_an_absent_one_is_seen() -> None:
    found = read(
        GPU + port("mlx5_1", near(1)) + port("mlx5_0", far(1)) + port("mlx5_9", near(2)),
        commcheck_nics=["mlx5_1", "mlx5_7", "mlx5_0"],
    )
    assert [(rail.label, rail.present, rail.fabric) for rail in found.rails] == [
        ("mlx5_1", True, True),
        ("mlx5_7", False, True),
        ("mlx5_0", True, True),
    ]
    assert names(found.other_ports) == ["mlx5_9"]


def test_a_port_that_is_not_there_is_named_as_it_was_declared() -> None:
    declared = ["mlx5_1/0", "mlx5_1/2", "mlx5_7"]
    found = read(GPU + port("mlx5_1", near(1)), commcheck_nics=declared)
    assert [(rail.port, rail.present) for rail in found.rails] == [
        (0, False),
        (2, False),
        (1, False),
    ]


def test_the_port_by_which_a_guest_is_reached_tells_no_platform() -> None:
    """As on Azure: a bus of its own for each function, and mlx5_an0 below the guest's eth0."""
    bus = "/sys/devices/VMBUS:00/47505500/pci0001:00/0001:00:00.0"
    routes = "default eth0\nlower eth0 enP1s1\n"
    reached = port("mlx5_an0", bus.replace("01:00", "0f:00"), netdev="enP1s1")
    rails = "".join(
        port(f"mlx5_ib{n}", f"/sys/devices/VMBUS:00/{n}/pci010{n}:00/010{n}:00:00.0", **IB)
        for n in (1, 2)
    )
    found = read(f"{routes}accelerator 0x10de {bus}\n{rails}{reached}")
    assert (found.platform, names(found.rails)) == ("gpu-ib", ["mlx5_ib1", "mlx5_ib2"])
    assert names(found.other_ports) == ["mlx5_an0"]
    # All there is, or beside one in software, it is better than nothing.
    soft = port("rxe0", far(1), netdev="eth1", soft="1")
    only = read(f"{routes}accelerator 0x10de {bus}\n{reached}{soft}")
    assert only.platform == "gpu-roce"


def test_a_host_whose_fabric_is_efa() -> None:
    efa = "".join(
        port(f"rdmap{n}s0", near(n), driver="efa", link_layer="Unspecified") for n in (1, 2)
    )
    found = read(GPU + efa + port("mlx5_9", far(3)))
    assert (found.platform, names(found.rails)) == ("gpu-efa", ["rdmap1s0", "rdmap2s0"])
    mixed = read(GPU + efa + port("mlx5_0", near(3)))
    assert mixed.platform == "unknown"


@pytest.mark.parametrize("platform", ["gpu-roce", "gpu-ib", "gpu-efa"])
def test_a_gpu_host_without_any_port_shows_the_hole(platform: str) -> None:
    (rail,) = read(GPU, commcheck_platform=platform).rails
    assert (rail.hca, rail.present, rail.fabric) == ("none", False, True)
    assert read("", commcheck_platform="ascend").rails == ()
    # By design, and never found out by itself: all RDMA devices may as well be lost.
    assert read(GPU, commcheck_platform="gpu-tcp").rails == ()
    assert read(GPU).platform == "unknown"


def test_virtual_functions_are_rails_only_where_their_physical_one_is_not() -> None:
    vf = port("mlx5_2", near(1, function=2), physfn="0000:21:00.0")
    alone = read(GPU + vf)
    assert [(rail.label, rail.is_vf) for rail in alone.rails] == [("mlx5_2", True)]
    beside = read(GPU + vf + port("mlx5_0", near(1)))
    assert (names(beside.rails), names(beside.other_ports)) == (["mlx5_0"], ["mlx5_2"])
    assert [rail.is_vf for rail in beside.rails] == [False]
    assert read(GPU + port("mlx5_3", near(1) + "/mlx5_core.sf.4")).rails[0].is_vf


@pytest.mark.parametrize(
    ("driver", "pci_id", "is_vf", "is_bluefield"),
    [
        ("mlx5_core", "0x101e", True, False),  # a guest sees no physical function beside it
        ("mlx5_core", "0x1021", False, False),
        ("mlx5_core", "0xa2dc", False, True),
        ("mlx5_core", "0xa2d3", True, False),
        ("bnxt_en", "0x1807", True, False),
        ("bnxt_en", "0x101e", False, False),  # another vendor's number
        ("erdma", "0x107f", True, False),  # has no other functions
        ("iavf", "0x1889", True, False),
        ("mana", "0x00ba", True, False),
        ("ice", "0x1592", False, False),
        ("ionic", "0x1003", True, False),
        ("ionic", "0x1002", False, False),
        ("mlx5_core", "rubbish", False, False),
    ],
)
def test_what_the_device_id_tells(
    driver: str, pci_id: str, is_vf: bool, is_bluefield: bool
) -> None:
    (rail,) = read(GPU + port("mlx5_0", near(1), driver=driver, pci_id=pci_id)).rails
    assert (rail.is_vf, rail.is_bluefield) == (is_vf, is_bluefield)


def test_the_arm_side_owns_qos_where_the_inventory_says_so() -> None:
    cards = port("mlx5_0", near(1), pci_id="0xa2dc") + port("mlx5_1", near(2), pci_id="0x1021")
    for mode, owned in (("dpu", [True, False]), ("nic", [False, False])):
        found = read(GPU + cards, commcheck_bluefield_mode=mode)
        assert [rail.qos_on_arm for rail in found.rails] == owned


@pytest.mark.parametrize(
    ("layers", "platform"),
    [
        (["Ethernet"], "gpu-roce"),
        (["InfiniBand", "InfiniBand"], "gpu-ib"),
        (["InfiniBand", "Ethernet"], "unknown"),
        ([], "unknown"),
    ],
)
def test_the_platform_is_found_out(layers: list[str], platform: str) -> None:
    ports = [port(f"mlx5_{n}", far(n + 1), link_layer=layer) for n, layer in enumerate(layers)]
    assert read(GPU + "".join(ports)).platform == platform


def test_the_netdev_of_a_port() -> None:
    first = "net eth2 0\nnet eth3 1\n"
    found = read(
        port("mlx4_0", far(1)) + first + port("mlx4_0", far(1), 2) + first
        + port("mlx5_1", far(2)) + "net eth7 \n"
        + port("mlx5_bond_0", far(3), netdev="bond0") + "net eth8 0\n"
        + port("mlx5_2", far(4))
    )  # fmt: skip
    assert [(rail.label, rail.netdev) for rail in found.rails] == [
        ("mlx4_0", "eth2"),
        ("mlx4_0/2", "eth3"),
        ("mlx5_1", "eth7"),
        ("mlx5_2", None),
        ("mlx5_bond_0", "bond0"),
    ]


def test_a_bond_has_the_ports_below_it() -> None:
    """Each is a function of the card; one with an RDMA device of its own is another rail's."""
    lag = port("mlx5_bond_0", far(3), netdev="bond0")
    below = f"lower bond0 ens3f1 {far(3, function=1)}\nlower bond0 ens3f0\nlower x y\n"
    (rail,) = read(below + lag).rails
    assert (rail.label, rail.netdev, rail.bond) == ("mlx5_bond_0", "bond0", None)
    assert [(each.label, each.netdev, each.bond) for each in rail.ports] == [
        ("mlx5_bond_0:ens3f0", "ens3f0", "bond0"),
        ("mlx5_bond_0:ens3f1", "ens3f1", "bond0"),
    ]
    assert [each.pci for each in rail.ports] == [rail.pci, f"{str(rail.pci)[:-1]}1"]
    two = read(
        below
        + port("rocep1", far(3), netdev="bond0") + "net ens3f0 0\n"
        + port("rocep2", far(4), netdev="bond0") + "net ens3f1 0\n"
    ).rails  # fmt: skip
    assert [[each.netdev for each in rail.ports] for rail in two] == [["ens3f0"], ["ens3f1"]]


# --- machine -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "in_vm", "in_container"),
    [
        ("dmi_sys_vendor Supermicro\n", False, False),
        ("cpu_hypervisor 1\n", True, False),
        ("hypervisor xen\n", True, False),
        ("dmi_sys_vendor QEMU\n", True, False),
        ("container docker\n", False, True),
        ("cpu_hypervisor 1\ncontainer kubernetes\n", True, True),  # a pod on a cloud's node
    ],
)
def test_what_it_runs_in(text: str, in_vm: bool, in_container: bool) -> None:
    found = read(text)
    assert (found.in_vm, found.in_container) == (in_vm, in_container)


def test_accelerators_are_numbered_by_pci_address() -> None:
    found = read(
        f"accelerator 0x10de {SWITCH}/0000:9b:00.0\n{GPU}gpu 0000:19:00.0\ngpu 0000:aa:00.0\n"
    )
    assert [(each.label, each.pci) for each in found.accelerators] == [
        ("gpu0", "0000:19:00.0"),
        ("gpu1", "0000:9b:00.0"),
        ("gpu2", "0000:aa:00.0"),
    ]
    npus = read(f"accelerator 0x19e5 {SWITCH}/0000:c1:00.0\n")
    assert (npus.platform, npus.accelerators[0].label) == ("ascend", "npu0")


def test_a_gpu_that_vfio_holds_is_a_guests() -> None:
    guests = f"accelerator 0x10de {SWITCH}/0000:9b:00.0 vfio-pci\n"
    found = read(GPU + guests + port("mlx5_0", near(1)))
    assert [each.pci for each in found.accelerators] == ["0000:19:00.0"]
    assert found.for_guests == ("0000:9b:00.0",)
    alone = read(guests + port("mlx5_0", near(1)))
    assert (alone.accelerators, alone.platform, names(alone.rails)) == ((), "gpu-roce", ["mlx5_0"])


ALL = "".join(f"accelerator 0x10de {SWITCH}/0000:{bus}:00.0\n" for bus in (19, 29, 39, 49))
DRIVER = "".join(f"gpu 0000:{bus}:00.0 {n}\n" for n, bus in enumerate((19, 29, 39, 49)))


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        # The toolkit's own runtime: the driver's folder shows those that the container has.
        (f"{ALL}gpu 0000:29:00.0 1\ngpu 0000:39:00.0 2\ngpu_file 1\ngpu_file 2\n", "29 39"),
        # CDI: it shows all, and only the device files are the container's own.
        (f"{ALL}{DRIVER}gpu_file 1\ngpu_file 2\n", "29 39"),
        (f"{ALL}{DRIVER}", ""),  # it was given none
        (f"{ALL}gpu 0000:29:00.0\n", "29"),  # of a run that did not ask for device files
        (f"{ALL}", "19 29 39 49"),
        # Given, and the driver has it no more.
        (f"{ALL}gpu 0000:29:00.0 1\ngpu_file 1\ngpu_file 3\n", "29 -"),
    ],
)
def test_a_container_has_the_gpus_it_was_given(text: str, addresses: str) -> None:
    found = read(f"container kubernetes\n{text}").accelerators
    assert " ".join((each.pci or "----:-")[5:7] for each in found) == addresses
    assert [each.index for each in found] == list(range(len(found)))
    bare = read(f"gpu_file 1\n{ALL}{DRIVER}").accelerators
    assert len(bare) == 4


@pytest.mark.parametrize("text", ["", "hostname x\n", "kernel Linux\nuid root\n", "garbage"])
def test_a_frame_without_the_basics_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        machine(host(), text)


# --- hostile hosts -------------------------------------------------------------------------------


def test_a_hostile_hca_is_seen_and_never_a_word_of_a_command() -> None:
    found = read(GPU + port("?", near(1)) + port("$(reboot)", near(2), netdev="a;b"))
    assert names(found.rails) == ["?0", "?1"]
    assert found.rails[1].netdev is None


def test_a_hostile_host_name_begins_no_line() -> None:
    found = machine(host(), BASE.replace("gpu-03", "gpu\x0b-03\x85root self\u2028uid 0"))
    assert (found.root, found.uid) == ("untried", 1000)


KEYS = (
    *("port", "path", "driver", "netdev", "net", "net4", "net6", "ssh", "default", "lower"),
    *("accelerator", "gpu", "gpu_file", "container", "state", "physfn", "soft", "uid", "kernel"),
    "nvswitch",
)


@settings(max_examples=200)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=30),
            st.builds(
                "{} {}".format,
                st.sampled_from(KEYS),
                st.one_of(
                    st.text(max_size=20),
                    st.sampled_from(["mlx5_0 1", "eth0 0000000A 000000FF", "10.0.0.1", "e zz ff"]),
                ),
            ),
        ),
        max_size=15,
    )
)
def test_no_frame_raises_anything_but_a_parse_error(lines: list[str]) -> None:
    found = machine(host(commcheck_nics=["mlx5_0"]), BASE + "\n".join(lines))
    assert names(found.rails) == ["mlx5_0"]
    machine(host(), BASE + "\n".join(lines))
    try:
        machine(host(), "\n".join(lines))
    except ParseError as error:
        assert str(error)


# --- with the real runner ------------------------------------------------------------------------


class Sysfs:
    """A folder laid out as /sys and /proc are, with their relative symlinks."""

    def __init__(self, root: Path) -> None:
        self.root = root
        kernel = "/proc/sys/kernel/"
        self.files(
            {
                f"{kernel}hostname": "gpu-03\n",
                f"{kernel}ostype": "Linux\n",
                f"{kernel}osrelease": "5.15.0-91-generic\n",
                f"{kernel}random/boot_id": "5f2c\n",
                "/proc/uptime": "100.50 9.0\n",
                "/proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu vme\n",
                "/sys/class/dmi/id/sys_vendor": "Supermicro\n",
            }
        )

    def files(self, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            path = self.root / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def link(self, name: str, target: str) -> None:
        path, to = (self.root / each.lstrip("/") for each in (name, target))
        to.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(to, path.parent))

    def pci(self, path: str, vendor: str, kind: str) -> None:
        self.files({f"{path}/vendor": f"{vendor}\n", f"{path}/class": f"{kind}\n"})
        self.link(f"/sys/bus/pci/devices/{path.rpartition('/')[2]}", path)

    def hca(self, name: str, path: str, netdev: str, state: str = "4: ACTIVE") -> None:
        self.pci(path, "0x15b3", "0x020000")
        device = f"{path}/infiniband/{name}"
        self.files(
            {
                f"{device}/ports/1/link_layer": "Ethernet\n",
                f"{device}/ports/1/state": f"{state}\n",
                f"{device}/ports/1/phys_state": "5: LinkUp\n",
                f"{device}/ports/1/rate": "400 Gb/sec (4X NDR)\n",
                f"{device}/ports/1/gid_attrs/ndevs/0": f"{netdev}\n",
                f"{path}/net/{netdev}/dev_port": "0\n",
            }
        )
        self.link(f"/sys/class/infiniband/{name}", device)
        self.link(f"{device}/device", path)
        self.link(f"{path}/driver", "/sys/bus/pci/drivers/mlx5_core")
        self.link(f"/sys/class/net/{netdev}", f"{path}/net/{netdev}")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("container", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSH_CONNECTION", "10.1.0.9 50000 10.1.0.3 22")
    return use_shell(request.param, tmp_path / "bin", monkeypatch)


def discover(shell: str, sysfs: Sysfs) -> Frame:
    frames = Frames()
    session = Session(mark=f"subjects-{os.getpid()}", sysfs_root=str(sysfs.root))
    LocalVisitor(lambda _host: session, shell).visit(host(), lambda _found: [], frames)
    return frames[0]


def test_the_runner_finds_what_sysfs_holds(shell: str, tmp_path: Path) -> None:
    sysfs = Sysfs(tmp_path / "root")
    sysfs.pci(f"{SWITCH}/0000:17:00.0/0000:19:00.0", "0x10de", "0x030200")
    sysfs.pci(f"{FAR}/0000:02:00.0", "0x10de", "0x068000")  # NVSwitch: no accelerator
    about = "Model: \t\t NVIDIA H100\nDevice Minor: \t 6\nGPU Excluded:\t No\n"
    sysfs.files(
        {
            "/proc/driver/nvidia/gpus/0000:19:00.0/information": about,
            **dict.fromkeys(("/dev/nvidia6", "/dev/nvidiactl", "/dev/nvidia-uvm"), ""),
        }
    )
    held = f"{SWITCH}/0000:17:04.0/0000:9b:00.0"
    sysfs.pci(held, "0x10de", "0x030200")
    sysfs.link(f"{held}/driver", "/sys/bus/pci/drivers/vfio-pci")
    sysfs.link(f"{SWITCH}/0000:17:00.0/0000:19:00.0/driver", "/sys/bus/pci/drivers/nvidia")
    sysfs.hca("mlx5_9", near(6), "ib9")
    sysfs.files(
        {
            f"{near(6)}/device": "0x1021\n",
            f"{near(6)}/infiniband/mlx5_9/ports/1/link_layer": "InfiniBand\n",
            f"{near(6)}/vpd": "\x82V2SMDL=SW_MNGx",
        }
    )
    sysfs.hca("mlx5_0", near(1), "eth1")
    sysfs.hca("mlx5_1", near(2), "eth2", state="1: DOWN")
    sysfs.hca("mlx5_2", far(3), "eth3")
    sysfs.files(
        {
            "/proc/net/route": "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
            "eth3\t00000000\t0100010A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
            "eth3\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
        }
    )
    frame = discover(shell, sysfs)
    found = machine(host(), frame.stdout.decode())
    assert (found.hostname, found.kernel, found.boot_id) == (
        "gpu-03",
        "Linux 5.15.0-91-generic",
        "5f2c",
    )
    assert found.uid == os.geteuid()
    assert found.root == ("self" if os.geteuid() == 0 else "untried")
    assert (found.platform, found.in_vm, found.in_container) == ("gpu-roce", False, False)
    assert [(each.label, each.pci) for each in found.accelerators] == [("gpu0", "0000:19:00.0")]
    assert names(found.rails) == ["mlx5_0", "mlx5_1"]
    rail = found.rails[1]
    assert (rail.netdev, rail.driver, rail.link_layer) == ("eth2", "mlx5_core", "Ethernet")
    assert (rail.pci, rail.state, rail.is_vf) == ("0000:22:00.0", "DOWN", False)
    assert names(found.other_ports) == ["mlx5_2", "mlx5_9"]
    assert found.for_guests == ("0000:9b:00.0",)
    text = frame.stdout.decode().splitlines()
    assert {"ssh 10.1.0.3", "default eth3", "net4 eth3 0000010A 0000FFFF"} <= set(text)
    assert [line for line in text if line.startswith("gpu")] == [
        "gpu 0000:19:00.0 6",
        "gpu_file 6",
    ]


def test_hostile_names_in_sysfs_do_no_harm(shell: str, tmp_path: Path) -> None:
    sysfs = Sysfs(tmp_path / "root")
    sysfs.pci(f"{SWITCH}/0000:17:00.0/0000:19:00.0", "0x10de", "0x030200")
    touched = tmp_path / "touched"
    sysfs.hca(f"$(touch {touched})".replace("/", "\\"), near(1), "eth1")
    sysfs.hca("a\nuid 0\nport b 1", near(2), "x`id`\ty")
    sysfs.hca("-rf *", near(3), "é")
    sysfs.files({"/proc/sys/kernel/hostname": "host\x00\x1b[2J\xff\troot self\n"})
    frame = discover(shell, sysfs)
    found = machine(host(), frame.stdout.decode("utf-8", "backslashreplace"))
    assert sorted(names(found.rails)) == ["?0", "?1", "?2"]
    assert {rail.netdev for rail in found.rails} <= {"eth1", None}
    assert not touched.exists()


def test_an_empty_machine_is_found_quickly(shell: str, tmp_path: Path) -> None:
    sysfs = Sysfs(tmp_path / "root")
    for index in range(8):
        sysfs.pci(f"{SWITCH}/0000:17:0{index}.0/0000:a{index}:00.0", "0x10de", "0x030200")
        sysfs.hca(f"mlx5_{index}", f"{SWITCH}/0000:17:1{index}.0/0000:b{index}:00.0", f"e{index}")
    for index in range(200):
        sysfs.pci(f"{FAR}/0000:00:{index:02x}.0", "0x8086", "0x060400")
    start = time.monotonic()
    frame = discover(shell, sysfs)
    assert frame.stdout.count(b"port mlx5_") == 8
    # 50 ms on a quiet machine; the sweep at the end and a busy test machine come on top.
    assert frame.ended_s - frame.started_s < 1.0
    assert time.monotonic() - start < 3.0


def test_npus_have_the_ids_of_their_driver_and_not_the_order_of_pci() -> None:
    """An id may be missing, and PCI addresses follow the board: neither may be counted."""
    pci = "".join(
        f"accelerator 0x19e5 /sys/devices/pci0000:{bus}/0000:{bus}:00.0\n"
        for bus in ("01", "02", "c1")
    )
    found = machine(host(), f"{BASE}{pci}npu 0\nnpu 10\nnpu 2\nnpu x\nnpu 0\n")
    assert found.platform == "ascend"
    assert [each.label for each in found.accelerators] == ["npu0", "npu2", "npu10"]
    assert {each.pci for each in found.accelerators} == {None}
    assert found.npus == "0:2:10"
    without = machine(host(), BASE + pci)
    assert [each.pci for each in without.accelerators] == [
        "0000:01:00.0",
        "0000:02:00.0",
        "0000:c1:00.0",
    ]
    assert machine(host(), BASE + GPU).npus is None
