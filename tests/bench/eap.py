"""EAP handshakes: Sallyport and FreeRADIUS, driven in turn by the same eapol_test processes.

Both have the same certificate (RSA, 2048 bits) and speak TLS 1.2, which is what FreeRADIUS 3.2 offers unless told
otherwise and eapol_test asks for. The clients work harder than the servers, so that logins a second tell little: what
counts is the processor time that a server needs for a login. Sallyport records each login, FreeRADIUS nothing.

Beside the handshakes a trickle of plain logins runs: their slowest hundredth tells what a handshake does to others.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory

from tabulate import tabulate

from tests.radius_client import RadiusClient
from tests.service import running_service

from .child import SECRET, Running, free_port, process_tree
from .radius import OURS, PLAIN, Server
from .radiusd import listen, running_radiusd, version, write_users
from .settings import BenchmarkError, Settings

CLIENTS = 4
LOGINS = 50
"""Of each client in a turn, all but the first of which may resume its session."""
TRICKLE_S = 0.01
USER, PASSWORD = "user0", "pass0"

METHODS = {"PEAP-MSCHAPv2": ("PEAP", "auth=MSCHAPV2"), "TTLS-PAP": ("TTLS", "auth=PAP")}
NETWORK = """\
fast_reauth={resumes:d}
network={{
    key_mgmt=IEEE8021X
    eap={method}
    identity="{user}"
    password="{password}"
    ca_cert="{ca}"
    phase2="{inner}"
}}
"""

SECTIONS = """\
modules {{
    pap {{
    }}
    mschap {{
    }}
    files {{
        usersfile = {directory}/authorize
    }}
    eap {{
        default_eap_type = peap
        timer_expire = 60
        max_sessions = 4096
        tls-config common {{
            private_key_file = {certificates}/server.key
            certificate_file = {certificates}/server.pem
            ca_file = {certificates}/ca.pem
            cipher_list = "DEFAULT"
            cache {{
                enable = {resumes}
                lifetime = 24
                name = "bench"
            }}
        }}
        mschapv2 {{
        }}
        peap {{
            tls = common
            default_eap_type = mschapv2
            virtual_server = inner
        }}
        ttls {{
            tls = common
            default_eap_type = mschapv2
            virtual_server = inner
        }}
    }}
}}
server bench {{
{listen}    authorize {{
        eap {{
            ok = return
        }}
        files
        pap
    }}
    authenticate {{
        eap
        pap
    }}
}}
server inner {{
    authorize {{
        eap {{
            ok = return
        }}
        files
        mschap
        pap
    }}
    authenticate {{
        eap
        mschap
        pap
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """logins a second; cpu_ms: processor time of the server for each; p99_ms: of the plain logins beside."""

    logins: float
    cpu_ms: float
    p99_ms: float


def run(settings: Settings) -> str:
    """Measure the chosen servers; Markdown. BenchmarkError when one does not start or a login fails."""
    program = shutil.which("eapol_test")
    if program is None:
        raise BenchmarkError("eapol_test is missing: apt-get install eapoltest")
    results: dict[tuple[str, str, bool], Turn] = {}
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name, ExitStack() as stack:
        directory = Path(name)
        certificates = directory / "certificates"
        ours = directory / OURS
        ours.mkdir()
        service = stack.enter_context(_sallyport(ours, certificates))
        servers = (
            Server(PLAIN, partial(_freeradius, certificates, False)),
            Server(f"{PLAIN}-resuming", partial(_freeradius, certificates, True)),
        )
        running = {(OURS, False): service, (OURS, True): service}
        for server, resumes in zip(servers, (False, True), strict=True):
            own = directory / server.key
            own.mkdir()
            running[PLAIN, resumes] = stack.enter_context(server.start(own))
        chosen = {pair: each for pair, each in running.items() if not settings.servers or pair[0] in settings.servers}
        for _ in range(settings.rounds):
            for method in METHODS:
                for (key, resumes), one in chosen.items():
                    turn = _turn(program, directory, one, method, certificates, resumes=resumes)
                    best = results.get((key, method, resumes))
                    results[key, method, resumes] = turn if best is None or turn.cpu_ms < best.cpu_ms else best
    return "\n\n".join([_introduction(settings), _table(results)])


# --- who is measured ------------------------------------------------------------------------------------------


@contextmanager
def _sallyport(directory: Path, certificates: Path) -> Iterator[Running]:
    """The service; a copy of its certificates is left for the other server."""
    with running_service(directory, fresh=True) as service:
        service.ok("cert", "init", "--host", "radius.example.com")
        shutil.copytree(service.data_dir / "certs", certificates)
        client = {"name": "bench", "address": "127.0.0.1", "secret": SECRET.encode().hex()}
        service.call("client.add", org=1, tenant=1, domains=[], clients=[client])
        service.call("user.add", name=USER, domain="default", password=PASSWORD.encode().hex())
        yield Running("Sallyport", service.ports.auth, service.process_id, None)


@contextmanager
def _freeradius(certificates: Path, resumes: bool, directory: Path) -> Iterator[Running]:
    port = free_port()
    write_users(directory, {USER: PASSWORD})
    sections = SECTIONS.format(
        directory=directory, listen=listen(port), certificates=certificates, resumes="yes" if resumes else "no"
    )
    with running_radiusd(directory, sections) as process:
        yield Running("FreeRADIUS", port, process, None)


# --- a turn ---------------------------------------------------------------------------------------------------


def _turn(program: str, directory: Path, server: Running, method: str, certificates: Path, *, resumes: bool) -> Turn:
    kind, inner = METHODS[method]
    file = directory / "eapol.conf"
    network = {"method": kind, "inner": inner, "user": USER, "password": PASSWORD, "ca": certificates / "ca.pem"}
    file.write_text(NETWORK.format(resumes=resumes, **network))
    command = [program, "-c", str(file), "-a", "127.0.0.1", "-p", str(server.port), "-s", SECRET, "-t", "60"]
    command += ["-r", str(LOGINS - 1)]
    before, began = _cpu_s(server.process_id), time.monotonic()
    with ExitStack() as stack:
        clients = [
            subprocess.Popen(
                [*command, "-M", f"02:00:00:00:00:{number:02x}"],
                stdout=stack.enter_context((directory / f"client{number}").open("wb")),
                stderr=subprocess.STDOUT,
            )
            for number in range(CLIENTS)
        ]
        beside = _trickle(stack.enter_context(RadiusClient(server.port, SECRET)), clients)
    told = [(directory / f"client{number}").read_text(errors="replace") for number in range(CLIENTS)]
    took, cpu = time.monotonic() - began, _cpu_s(server.process_id) - before
    for text in told:
        if "\nSUCCESS\n" not in text or "MPPE keys OK" not in text:
            raise BenchmarkError(f"{server.name}, {method}: a login failed\n{text[-1500:]}")
    count = CLIENTS * LOGINS
    return Turn(count / took, 1000 * cpu / count, quantiles(beside, n=100)[98] if len(beside) > 1 else 0)


def _trickle(plain: RadiusClient, clients: Sequence["subprocess.Popen[bytes]"]) -> list[float]:
    """Plain logins, one after the other, until the clients are through; how long each took, in milliseconds."""
    taken: list[float] = []
    while any(client.poll() is None for client in clients):
        began = time.perf_counter()
        plain.login(USER, PASSWORD)
        taken.append(1000 * (time.perf_counter() - began))
        time.sleep(TRICKLE_S)
    return taken


def _cpu_s(process_id: int) -> float:
    """The processor time that a process and its children have used."""
    ticks = 0
    for each in process_tree(process_id):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


# --- what is told ---------------------------------------------------------------------------------------------


def _introduction(settings: Settings) -> str:
    return (
        f"{CLIENTS} times {LOGINS} logins by eapol_test against {version()}, TLS 1.2, RSA of 2048 bits; best of "
        f"{settings.rounds} round(s). Sallyport records each login before it answers; FreeRADIUS nothing. Beside them "
        "a plain login every 10 ms."
    )


def _table(results: dict[tuple[str, str, bool], Turn]) -> str:
    headers = ["method", "session", "server", "logins/s", "CPU ms each", "plain p99 ms", "per CPU second (aim: 0.8)"]
    rows = []
    for (key, method, resumes), turn in sorted(results.items(), key=lambda item: item[0][1:] + item[0][:1]):
        theirs = results.get((PLAIN, method, resumes))
        ratio = f"{theirs.cpu_ms / turn.cpu_ms:.2f}" if theirs is not None and key == OURS else ""
        session = "resumed" if resumes else "full"
        rows.append([method, session, key, f"{turn.logins:.0f}", f"{turn.cpu_ms:.2f}", f"{turn.p99_ms:.1f}", ratio])
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["left"] * 3 + ["right"] * 4)
