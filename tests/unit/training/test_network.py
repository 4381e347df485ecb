"""Where ranks find each other, found out where names are known."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.training.node import network
from proofmark.training.node.network import GLOO, choose_interface, resolved

INTERFACES = {"lo": ["127.0.0.1"], "eth0": ["10.0.0.2", "fe80::1"], "ib0": ["10.1.0.2", "2001:db8:1::2"]}


@pytest.fixture
def routes(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """From which own address packets go to which; to others there is no way."""
    ways: dict[str, str] = {}

    class Way:
        def __init__(self, family: int, kind: int) -> None:
            assert kind == socket.SOCK_DGRAM
            self._colons = family == socket.AF_INET6

        def __enter__(self) -> Way:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def connect(self, address: tuple[str, int]) -> None:
            if address[0] not in ways or (":" in address[0]) != self._colons:
                raise OSError("Network is unreachable")
            self._own = ways[address[0]]

        def getsockname(self) -> tuple[str, int]:
            return self._own, 1

    addresses: Callable[[], Any] = lambda: {  # noqa: E731
        name: [SimpleNamespace(address=each) for each in own] for name, own in INTERFACES.items()
    }
    monkeypatch.setattr(network.socket, "socket", Way)
    monkeypatch.setattr(network.psutil, "net_if_addrs", addresses)
    monkeypatch.delenv(GLOO, raising=False)
    return ways


@pytest.mark.parametrize(
    "ways, chosen",
    [
        ({"10.1.0.1": "10.1.0.2", network.ELSEWHERE[0]: "10.0.0.2"}, "ib0"),
        ({"10.1.0.1": "127.0.0.1", network.ELSEWHERE[0]: "10.0.0.2"}, "eth0"),
        ({"10.1.0.1": "127.0.0.1", network.ELSEWHERE[1]: "2001:db8:1::2"}, "ib0"),
        ({"10.1.0.1": "127.0.1.1", network.ELSEWHERE[1]: "::1"}, None),
        ({}, None),
    ],
    ids=[
        "to the first node",
        "it is the first node, by a name that means its loopback",
        "the others are reached by IPv6 alone",
        "no way out",
        "no network",
    ],
)
def test_ranks_are_reached_by_the_interface_that_leads_to_the_others(
    routes: dict[str, str], ways: dict[str, str], chosen: str | None
) -> None:
    routes.update(ways)
    choose_interface("10.1.0.1")
    assert os.environ.pop(GLOO, None) == chosen


def test_a_first_node_of_ipv6_is_reached_too(routes: dict[str, str]) -> None:
    routes |= {"2001:db8:1::1": "2001:db8:1::2", network.ELSEWHERE[0]: "10.0.0.2"}
    choose_interface("2001:db8:1::1")
    assert os.environ.pop(GLOO, None) == "ib0"


def test_what_somebody_has_chosen_stays(routes: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    routes["10.1.0.1"] = "10.1.0.2"
    monkeypatch.setenv(GLOO, "eth1")
    choose_interface("10.1.0.1")
    assert os.environ[GLOO] == "eth1"


def test_a_name_is_resolved_here_and_one_that_nobody_knows_is_left() -> None:
    assert resolved("127.0.0.1") == "127.0.0.1" and resolved("localhost") == "127.0.0.1"
    assert resolved("no.such.host.invalid") == "no.such.host.invalid"
    assert resolved("a" * 70) == "a" * 70


def test_a_name_that_has_an_address_of_ipv6_alone_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks behind their wall can't: they have no UDP."""

    def known(name: str, port: None, family: int, type: int) -> list[Any]:
        if family != socket.AF_INET6:
            raise socket.gaierror(socket.EAI_ADDRFAMILY, "Address family for hostname not supported")
        return [(family, type, 6, "", ("2001:db8:1::1", 0, 0, 0))]

    monkeypatch.setattr(network.socket, "getaddrinfo", known)
    assert resolved("node1") == "2001:db8:1::1"
