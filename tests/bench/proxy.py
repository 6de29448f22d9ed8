"""Forwarded logins: Sallyport with the first factor `radius`, FreeRADIUS as a proxy, and radsecproxy from UDP to UDP.
They get the same load in turn. All three forward to one FreeRADIUS server, which checks passwords from a file and signs
its answers. Like the load generator it uses a part of a core in each turn, so the processor time of the proxies says
more than requests/s. Sallyport records an event for each login, on disk before the answer; the others record nothing.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.ports import free_port
from tests.running_service import running_service

from .child import SECRET, Running, child_process, wait_until
from .freeradius import Extras, run_freeradius
from .radius import OURS, USERS, WINDOWS, Results, Server, economies, figures, measure
from .radiusd import listen, running_radiusd, version
from .settings import BenchmarkError, Settings
from .spread import Aim, compared

ONE = {"orgId": 1, "tenantId": 1, "domainId": 1}
THEIRS, OTHER = "freeradius-proxy", "radsecproxy"

# Release 3.2.1 signs an answer only if this is configured. All proxies could be configured to drop unsigned answers.
SIGNED = Extras(
    accepted="""\
        update reply {
            &Message-Authenticator := 0x00
        }
"""
)

PROXY = """\
home_server home {{
    type = auth
    ipaddr = 127.0.0.1
    port = {home}
    secret = {secret}
    status_check = status-server
}}
home_server_pool home {{
    type = fail-over
    home_server = home
}}
realm bench {{
    auth_pool = home
    nostrip
}}
modules {{
}}
server bench {{
{listen}    authorize {{
        update control {{
            &Proxy-To-Realm := bench
        }}
    }}
}}
"""

RADSECPROXY = """\
ListenUDP 127.0.0.1:{port}
LogLevel 3
LoopPrevention off
client bench {{
    host 127.0.0.1
    type udp
    secret {secret}
}}
server home {{
    host 127.0.0.1
    port {home}
    type udp
    secret {secret}
    statusServer off
}}
realm * {{
    server home
}}
"""


def run(settings: Settings) -> str:
    """Measure all chosen proxies in front of one server and return Markdown.

    Raises BenchmarkError if one does not start or the comparison is void.
    """
    with (
        TemporaryDirectory(prefix="bench-", dir=settings.directory) as name,
        run_freeradius(Path(name), users=USERS, extras=SIGNED) as (home, _),
    ):
        servers = (
            Server(THEIRS, partial(_freeradius, home)),
            Server(OTHER, partial(_radsecproxy, home)),
            Server(OURS, partial(_sallyport, home)),
        )
        results, names = measure(servers, settings)
    return "\n\n".join([_introduction(settings), figures(results, names), *compared(_aims(results))])


# --- servers -----------------------------------------------------------------------------------------------------


@contextmanager
def _freeradius(home: int, directory: Path) -> Iterator[Running]:
    port = free_port()
    sections = PROXY.format(listen=listen(port), home=home, secret=SECRET)
    with running_radiusd(directory, sections, proxies=True) as process:
        yield Running(name="FreeRADIUS", port=port, process_id=process, count_events=None)


@contextmanager
def _radsecproxy(home: int, directory: Path) -> Iterator[Running]:
    port, output = free_port(), directory / "output"
    program = shutil.which("radsecproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        raise BenchmarkError("radsecproxy is missing: apt-get install radsecproxy")
    settings = directory / "radsecproxy.conf"
    settings.write_text(RADSECPROXY.format(directory=directory, port=port, home=home, secret=SECRET))
    with child_process([program, "-f", "-c", str(settings)], directory=directory, output=output) as process:
        wait_until(lambda: "listening for udp" in output.read_text(), process, output, seconds=20)
        yield Running(name="radsecproxy", port=port, process_id=process.pid, count_events=None)


@contextmanager
def _sallyport(home: int, directory: Path) -> Iterator[Running]:
    settings = {"SALLYPORT_LOG_LOGINS": "false"}  # the default of FreeRADIUS
    with running_service(directory, settings, fresh=True) as service:
        service.add_client("bench", "127.0.0.1", SECRET)
        server = {"host": "127.0.0.1", "port": home, "secret": SECRET}
        service.post("/ad/SetFirstFactor", {**ONE, "firstFactor": "radius", "radius": {"servers": [server]}})
        yield Running(
            name="Sallyport",
            port=service.ports.auth,
            process_id=service.process_id,
            count_events=lambda: int(service.rows("select count(*) from events")[0][0]),
        )


# --- output ------------------------------------------------------------------------------------------------------


def _introduction(settings: Settings) -> str:
    return (
        f"PAP logins with Message-Authenticator, passed on to {version()}; {settings.rounds} round(s), each of "
        f"at most {settings.seconds:g} s. Sallyport records each login before it answers; the others record nothing."
    )


def _aims(results: Results) -> list[Aim]:
    """Return the ratios to the other proxies; those to a server that was left out are missing."""
    found = [
        Aim(f"requests per CPU second / {name}, {window} outstanding", 1, economies(results, key, window))
        for key, name in ((THEIRS, "FreeRADIUS"), (OTHER, "radsecproxy"))
        for window in WINDOWS
    ]
    return [each for each in found if each.values]
