"""A FreeRADIUS that runs in debug mode with all files in the test's directory, and how it reaches the service."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.peers.programs import find

NAS_AND_HOME = """\
security {{
    reject_delay = 0    # the service has one
    allow_vulnerable_openssl = yes    # the check of the library's version; nothing here speaks TLS
}}
client nas {{
    ipaddr = 127.0.0.1
    secret = {nas_secret}
}}
home_server sallyport_auth {{
    type = auth
    ipaddr = 127.0.0.1
    port = {auth}
    secret = {home_secret}
    src_ipaddr = {source}
    status_check = none
}}
home_server sallyport_acct {{
    type = acct
    ipaddr = 127.0.0.1
    port = {acct}
    secret = {home_secret}
    src_ipaddr = {source}
    status_check = none
}}
home_server_pool sallyport_auth {{
    type = fail-over
    home_server = sallyport_auth
}}
home_server_pool sallyport_acct {{
    type = fail-over
    home_server = sallyport_acct
}}
realm sallyport {{
    auth_pool = sallyport_auth
    acct_pool = sallyport_acct
    nostrip
}}
"""
"""A part of radiusd.conf: a NAS, and the service as the home server of the realm sallyport. auth, acct: the ports of
the service. source: the address from which FreeRADIUS sends to it."""


@contextmanager
def running_freeradius(directory: Path, configuration: str) -> Iterator[None]:
    """Run FreeRADIUS during the block. configuration: the text of radiusd.conf, with the pid file in the directory."""
    (directory / "dictionary").write_text("")
    (directory / "radiusd.conf").write_text(configuration)
    output = directory / "output"
    with output.open("wb") as log:
        process = subprocess.Popen([find("freeradius"), "-X", "-d", str(directory)], stdout=log, stderr=log)
        try:
            eventually(lambda: "Ready to process requests" in output.read_text(errors="replace"), output)
            yield
        finally:
            process.kill()
            process.wait()


def eventually(holds: Callable[[], bool], output: Path, *, limit_s: float = 10) -> None:
    """Wait until the condition is true, for ten seconds by default."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, output.read_text(errors="replace")[-3000:]
        time.sleep(0.05)
