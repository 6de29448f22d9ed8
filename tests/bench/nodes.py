"""Logins over RADIUS that PostgreSQL records, beside the embedded database and beside FreeRADIUS with PostgreSQL.

The database server runs on the same machine and synchronizes its disk. A thousand network devices send from many
sockets: a single device would be a single row, which all transactions of FreeRADIUS would wait for.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tabulate import tabulate

from tests.peers.postgres import Server as PostgresServer
from tests.peers.postgres import made, postgres_rows, programs

from .child import Running
from .eap import Clients, Turn, by_password, serving_eap, turn
from .freeradius import postgres_freeradius
from .radius import OURS, USERS, Results, Server, figures, measure, rates
from .radiusd import version
from .sallyport import EVENTS, sallyport
from .settings import BenchmarkError, Settings
from .spread import Aim, compared, spread

WINDOW = 64
DEVICES = 1000
SENDERS = 32
CLIENTS = 48
"""Number of EAP clients of each server in a turn. Two servers run at the same time."""
PEER, ONE, TWO = "freeradius-postgresql", "postgresql", "workers"


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
            handshakes = _handshakes(Path(name), server, settings.rounds)
        finally:
            server.stop("immediate")
    parts = [_introduction(settings), figures(results, names), _table(handshakes)]
    return "\n\n".join([*parts, *compared(_aims(results, handshakes))])


def _handshakes(directory: Path, server: PostgresServer, rounds: int) -> Sequence[Sequence[Turn]]:
    """Return the turns of full EAP-PEAP logins with one worker, and those with two."""
    program = shutil.which("eapol_test")
    if program is None:
        raise BenchmarkError("eapol_test is missing: apt-get install eapoltest")
    turns: list[list[Turn]] = []
    with ExitStack() as stack:
        clients = []
        for workers in (1, 2):
            own = directory / f"eap{workers}"
            own.mkdir()
            given: dict[str, str | None] = {"SALLYPORT_DATABASE": _database(server, f"eap{workers}")}
            given["SALLYPORT_WORKERS"] = str(workers)
            running = stack.enter_context(serving_eap(own, own / "certificates", given))
            method = "PEAP-MSCHAPv2"
            clients.append(
                Clients(program, own, running, method, by_password(method, own / "certificates"), False, CLIENTS)
            )
        turns = [[turn(each) for each in clients] for _ in range(rounds)]
    return list(zip(*turns, strict=True))


def _table(handshakes: Sequence[Sequence[Turn]]) -> str:
    rows = [
        [str(workers), spread([each.logins for each in turns], ".0f"), spread([each.cpu_ms for each in turns], ".2f")]
        for workers, turns in enumerate(handshakes, 1)
    ]
    headers = ["workers", "EAP-PEAP logins/s", "CPU ms each"]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["right"] * 3)


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
        f"{settings.rounds} round(s), each of at most {settings.seconds:g} s. The processor time is that of "
        "the RADIUS server, without PostgreSQL's."
    )


def _aims(results: Results, handshakes: Sequence[Sequence[Turn]]) -> list[Aim]:
    """Return the figures with an aim, or an empty list if a server was left out."""
    one = [load.requests_per_second for load in results.get((ONE, WINDOW), ())]
    cost = [two.cpu_ms / one.cpu_ms for one, two in zip(*handshakes, strict=True)]
    found = [
        Aim("logins/s of one node", 10_000, one, ",.0f"),
        Aim("logins/s of one node / FreeRADIUS", 2, rates(results, PEER, WINDOW, ONE), ".1f"),
        Aim("logins/s of two workers / one node", 1, rates(results, ONE, WINDOW, TWO)),
        Aim("CPU of an EAP-PEAP login with two workers / with one", 1.1, cost, most=True),
    ]
    return [each for each in found if each.values]
