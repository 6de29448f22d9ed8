"""Sockets: an answer leaves from the address that was asked."""

import os
import shutil
import socket
import subprocess
import sys

import pytest

from sallyport.listen.udp import own_address

NAMESPACE = os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip")


@pytest.mark.skipif(not NAMESPACE, reason="needs root, unshare and ip, for a network namespace")
def test_an_answer_leaves_from_the_address_that_was_asked() -> None:
    """A socket on all addresses answers from the one that the request came to, as a NAS expects."""
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-m", "tests.listen.many_addresses"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "127.0.0.1 hello3",
        "192.0.2.7 hello3",
        "::1 hello3",
        "2001:db8::7 hello3",
    ]


def test_routing_chooses_the_interface() -> None:
    """The interface that a request came by is not forced on the answer, but where the address needs one."""
    v4 = socket.inet_aton("192.0.2.7")
    assert own_address((2).to_bytes(4, "little") + v4 + v4) == bytes(4) + v4 + bytes(4)
    wide = socket.inet_pton(socket.AF_INET6, "2001:db8::7")
    assert own_address(wide + (2).to_bytes(4, "little")) == wide + bytes(4)
    link = socket.inet_pton(socket.AF_INET6, "fe80::7") + (2).to_bytes(4, "little")
    assert own_address(link) == link
