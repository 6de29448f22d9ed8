"""Logins over RADIUS that PostgreSQL records, beside the embedded database and beside FreeRADIUS with PostgreSQL.

The database server runs on the same machine and synchronizes its disk. A thousand network devices send from many
sockets: a single device would be a single row, which all transactions of FreeRADIUS would wait for.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tabulate import tabulate

from tests.peers.postgres import Server as PostgresServer
from tests.peers.postgres import made, postgres_rows, programs

from .child import Running
from .eap import Clients, serving_eap, turn
from .freeradius import postgres_freeradius
from .radius import OURS, USERS, Results, Server, figures, measure
from .radiusd import version
from .sallyport import EVENTS, sallyport
from .settings import BenchmarkError, Settings

WINDOW = 64
DEVICES = 1000
SENDERS = 32
PEER, ONE, TWO = "freeradius-postgresql", "postgresql", "workers"
AIM = 10_000
"""Recorded logins a second of one node."""


def run(settings: Settings) -> str:
    """Measure and return Markdown. BenchmarkError: a server does not start, or the comparison is void."""
    if programs() is None:
        raise BenchmarkError("PostgreSQL is missing: apt-get install postgresql")
    with TemporaryDirectory(prefix="sallyport-postgres-", dir=settings.directory) as name:
        server = made(Path(name), {"listen_addresses": "'127.0.0.1'", "max_connections": "200"})
        try:
            servers = (
                Server(OURS, lambda directory: sallyport(directory, users=USERS)),
                Server(PEER, lambda directory: postgres_freeradius(directory, server, users=USERS)),
                Server(ONE, lambda directory: _node(directory, server, workers=1)),
                Server(TWO, lambda directory: _node(directory, server, workers=2)),
            )
            options = "-N", str(DEVICES), "-k", str(SENDERS)
            results, names = measure(servers, settings, *options, windows=(WINDOW,))
            handshakes = _handshakes(Path(name), server)
        finally:
            server.stop("immediate")
    return "\n\n".join([_introduction(settings), figures(results, names), *_ratio(results), handshakes])


def _handshakes(directory: Path, server: PostgresServer) -> str:
    """Return the processor time of full EAP-PEAP logins with one worker and with two."""
    program = shutil.which("eapol_test")
    if program is None:
        raise BenchmarkError("eapol_test is missing: apt-get install eapoltest")
    turns = []
    for workers in (1, 2):
        own = directory / f"eap{workers}"
        own.mkdir()
        given: dict[str, str | None] = {"SALLYPORT_DATABASE": _database(server, f"eap{workers}")}
        given["SALLYPORT_WORKERS"] = str(workers)
        with serving_eap(own, own / "certificates", given) as running:
            clients = Clients(program, own, running, "PEAP-MSCHAPv2", own / "certificates", resumes=False)
            turns.append(turn(clients))
    rows = [[f"{each.logins:.0f}", f"{each.cpu_ms:.2f}", f"{each.cpu_ms / turns[0].cpu_ms:.2f}"] for each in turns]
    headers = ["workers", "EAP-PEAP logins/s", "CPU ms each", "to one worker (aim: at most 1.1)"]
    body = [[str(number), *row] for number, row in enumerate(rows, 1)]
    return tabulate(body, headers, tablefmt="github", disable_numparse=True, colalign=["right"] * 4)


def _database(server: PostgresServer, name: str) -> str:
    server.execute(f"create database {name}")
    return server.url(name)


@contextmanager
def _node(directory: Path, server: PostgresServer, *, workers: int) -> Iterator[Running]:
    url = _database(server, f"sallyport{workers}")
    name = "Sallyport, PostgreSQL" + (f", {workers} workers" if workers > 1 else "")
    given = {"SALLYPORT_DATABASE": url, "SALLYPORT_WORKERS": str(workers)}
    with sallyport(directory, users=USERS, name=name, settings=given, count=partial(_count, url)) as running:
        yield running


def _count(url: str) -> int:
    return int(postgres_rows(url, EVENTS, ())[0][0])


def _introduction(settings: Settings) -> str:
    return (
        f"PAP logins with Message-Authenticator from {DEVICES:,} devices and {SENDERS} sockets against {version()}; "
        f"best of {settings.rounds} round(s), each of at most {settings.seconds:g} s. The processor time is that of "
        "the RADIUS server, without PostgreSQL's."
    )


def _ratio(results: Results) -> list[str]:
    """Return the ratios of interest; empty if a server was left out."""
    one, peer, two = (results.get((key, WINDOW)) for key in (ONE, PEER, TWO))
    if one is None or peer is None or two is None:
        return []
    rows = [
        [
            f"{one.requests_per_second / AIM:.2f}",
            f"{one.requests_per_second / peer.requests_per_second:.1f}",
            f"{two.requests_per_second / one.requests_per_second:.2f}",
        ]
    ]
    headers = [f"one node / {AIM:,} a second (aim: 1)", "one node / FreeRADIUS (aim: 2)", "two workers / one node"]
    return [tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["right"] * 3)]
