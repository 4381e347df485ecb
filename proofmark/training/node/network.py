"""The way to the first node, as it is known where names are: ranks may be behind a wall, where nobody is asked."""

from __future__ import annotations

import contextlib
import os
import socket

import psutil

GLOO = "GLOO_SOCKET_IFNAME"
"""By it gloo is told the interface that ranks are reached by."""

FAMILIES = socket.AF_INET, socket.AF_INET6

ELSEWHERE = "192.0.2.1", "2001:db8::1"
"""Addresses of nobody (RFC 5737, RFC 3849): the way there is the way to other hosts."""


def resolved(name: str) -> str:
    """The address of a host; its name, where nobody knows one, which is told by who connects to it."""
    for family in FAMILIES:
        with contextlib.suppress(OSError, UnicodeError):
            return str(socket.getaddrinfo(name, None, family=family, type=socket.SOCK_STREAM)[0][4][0])
    return name


def choose_interface(master: str) -> None:
    """Have gloo listen where the other nodes are, unless somebody has said where: by itself it listens at what the
    host's own name means, which on many is the loopback."""
    ways = (_way_to(address, family) for address in (master, *ELSEWHERE) for family in FAMILIES)
    if GLOO not in os.environ and (name := next(filter(None, ways), None)):
        os.environ[GLOO] = name


def _way_to(address: str, family: socket.AddressFamily) -> str | None:
    """The interface by which packets go there; none is sent. None where that is not known, or it is this host."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as way:
            way.connect((address, 9))
            own = way.getsockname()[0]
    except OSError:
        return None
    if own.startswith("127.") or own == "::1":
        return None
    interfaces = psutil.net_if_addrs()
    holding = (name for name, addresses in interfaces.items() if own in {each.address for each in addresses})
    return next((name for name in holding if name != "lo"), None)
