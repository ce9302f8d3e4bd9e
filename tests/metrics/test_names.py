"""Which series are of which host."""

from __future__ import annotations

from array import array

import pytest

from commcheck.metrics.api import Series
from commcheck.metrics.names import Index, called, short


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ({"instance": "gpu-01:9100"}, ["gpu-01"]),
        ({"instance": "10.0.0.1:9400", "Hostname": "GPU-01"}, ["gpu-01", "10.0.0.1"]),
        ({"instance": "[fd00::1]:9100"}, ["fd00::1"]),
        ({"instance": "fd00::1"}, ["fd00::1"]),
        ({"instance": "gpu-01.pod1.example"}, ["gpu-01.pod1.example"]),
        ({"node": "gpu-01", "instance": ""}, ["gpu-01"]),
        ({"instance": "gpu-01:metrics"}, ["gpu-01"]),
        ({"kubernetes_io_hostname": "gpu-01", "Hostname": "dcgm-x7k2p"}, ["dcgm-x7k2p", "gpu-01"]),
        ({"k8s_node_name": "gpu-01", "host_name": "gpu-01.a"}, ["gpu-01", "gpu-01.a"]),
        ({"job": "node"}, []),
    ],
)
def test_what_a_series_calls_its_host(labels: dict[str, str], names: list[str]) -> None:
    assert list(called(labels)) == names


def test_an_address_has_no_short_name() -> None:
    assert short("10.0.0.1") == "10.0.0.1"
    assert short("gpu-01.pod1") == "gpu-01"


def index(*hosts: dict[str, str], known: tuple[str, ...] = ()) -> Index:
    made = Index(frozenset(known))
    made.add("sm", [Series(labels, array("d", [1.0])) for labels in hosts])
    return made


@pytest.mark.parametrize(
    ("hosts", "names", "count"),
    [
        ([{"instance": "gpu-01:9100"}], ("gpu-01",), 1),
        ([{"instance": "gpu-01.pod1:9100"}], ("gpu-01",), 1),
        ([{"instance": "gpu-01:9100"}], ("gpu-01.pod1",), 1),
        ([{"instance": "gpu-01.pod1.example:9100"}], ("gpu-01.pod1",), 1),
        # Two of one short name, or another domain: nobody can tell, so nobody is taken.
        ([{"instance": "gpu-01.a:9100"}, {"instance": "gpu-01.b:9100"}], ("gpu-01",), 0),
        ([{"instance": "gpu-01.b:9100"}], ("gpu-01.a",), 0),
        ([{"instance": "gpu-010:9100"}], ("gpu-01",), 0),
        ([{"instance": "10.0.0.10:9100"}], ("10.0.0.1",), 0),
        ([{"Hostname": "gpu-01"}, {"instance": "10.0.0.1:9"}], ("gpu-01", "10.0.0.1"), 2),
        ([{"instance": "gpu-01:9100"}], ("", "other"), 0),
    ],
)
def test_series_of_a_host(hosts: list[dict[str, str]], names: tuple[str, ...], count: int) -> None:
    assert len(index(*hosts).of(names).get("sm", [])) == count


@pytest.mark.parametrize(
    ("host", "told"), [("gpu-01", "gpu-01"), ("gpu-01", "gpu-01.pod1"), ("gpu-01.pod1", "gpu-01")]
)
def test_the_name_of_a_container_does_not_hide_the_host(host: str, told: str) -> None:
    labels = {"Hostname": "3f2a9c", "instance": f"{told}:9400"}
    assert index(labels, known=(host,)).of((host,))


def test_a_host_of_another_domain_is_not_taken_for_a_known_one() -> None:
    labels = {"Hostname": "3f2a9c", "instance": "gpu-01.b:9400"}
    assert not index(labels, known=("gpu-01.a",)).of(("gpu-01.a",))


def test_a_short_name_that_two_hosts_may_have_is_nobodys() -> None:
    made = index({"Hostname": "gpu-01"}, known=("gpu-01.a", "gpu-01.b"))
    assert not made.of(("gpu-01.a",))
    assert index({"Hostname": "gpu-01"}, known=("gpu-01.a",)).of(("gpu-01.a",))
    one = index({"Hostname": "gpu-01"}, known=("gpu-01.a", "192.0.2.1", "gpu-01"))
    assert one.of(("gpu-01.a", "192.0.2.1", "gpu-01"))
