"""EAP handshakes at Sallyport and at FreeRADIUS with and without recording. The same eapol_test processes send them to
each server. All have the same certificate (RSA, 2048 bits) and speak TLS 1.2, the default of FreeRADIUS 3.2 and of
eapol_test. The clients need more processor time than the servers, so the logins a second are of little use. The result
is the server's processor time for a login. Sallyport records each login before it answers, and so does one variant of
FreeRADIUS (see `freeradius`). The other variant records nothing; the target is relative to this one. Each server has a
core of its own, and the clients have the other cores, as if they ran on other machines. There are many clients because
each one pauses for a tenth of a second before a login. With few clients, the wake-ups of the server would dominate:
with 48 clients, they cost Sallyport more than FreeRADIUS, at the same rate. All use the same fragment size, cipher
suite and group. In separate turns, plain logins at a low rate run beside the handshakes. Their p99 shows the effect of
handshakes on other logins; their processor time is not in the results. The answers to each login are counted, because
they show whether sessions are resumed. If they are not, a turn of resumed logins is void.
"""

import os
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory

from tabulate import tabulate

from sallyport.areas.login.eap.offered import MAX_FRAGMENT_SIZE
from sallyport.cli.benchmark.processes import cpu_s, process_tree
from tests.ports import free_port
from tests.radius_client import RadiusClient
from tests.running_service import running_service

from .child import SECRET, Running
from .freeradius import Extras, count_events, create_database, records
from .radius import OURS, PLAIN, RECORDING
from .radiusd import listen, running_radiusd, version, write_users
from .settings import BenchmarkError, Settings
from .spread import Aim, compared, spread

CLIENTS = 144
BESIDE = 4
"""Number of clients in turns with plain logins. More clients would delay these logins on the core that they share."""
LOGINS = 50
"""Logins of each client in a turn. All but the first may resume the session."""
TRICKLE_S = 0.01
MAX_RESUMED = 5
"""Highest average number of answers to a resumed login. A full login takes seven or more."""
USER, PASSWORD = "user0", "pass0"

METHODS = {"PEAP-MSCHAPv2": ("PEAP", "auth=MSCHAPV2"), "TTLS-PAP": ("TTLS", "auth=PAP")}
NETWORK = """\
fast_reauth={resumes:d}
network={{
    key_mgmt=IEEE8021X
    {credentials}
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
            fragment_size = {fragment_size}
            cipher_list = "DEFAULT"
            ecdh_curve = ""
            cache {{
                enable = {resumes}
                lifetime = 24
                name = "bench"
                persist_dir = {directory}/sessions
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
{modules}}}
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
    post-auth {{
{accepted}    }}
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
    """The measurements of a turn: logins a second; answers, the RADIUS packets for each login of the last client; and
    cpu_ms, the server's processor time for each login.
    """

    logins: float
    answers: float
    cpu_ms: float


Case = tuple[str, str, bool]
"""A server, a method, and whether sessions are resumed."""


def run(settings: Settings) -> str:
    """Measure the chosen servers and return Markdown. Raises BenchmarkError if one does not start or a login fails."""
    program = shutil.which("eapol_test")
    if program is None:
        raise BenchmarkError("eapol_test is missing: apt-get install eapoltest")
    results, delays = defaultdict[Case, list[Turn]](list), defaultdict[Case, list[float]](list)
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name, ExitStack() as stack:
        core = stack.enter_context(_reserved_core())
        directory = Path(name)
        certificates = directory / "certificates"
        ours = directory / OURS
        ours.mkdir()
        service = stack.enter_context(serving_eap(ours, certificates))
        running = {(OURS, False): service, (OURS, True): service}
        for key in (PLAIN, RECORDING):
            for resumes in (False, True):
                own = directory / f"{key}-{resumes}"
                own.mkdir()
                running[key, resumes] = stack.enter_context(
                    _freeradius(certificates, own, resumes=resumes, recording=key == RECORDING)
                )
        for each in running.values():
            _move(each.process_id, core)
        chosen = {pair: each for pair, each in running.items() if not settings.servers or pair[0] in settings.servers}
        for _ in range(settings.rounds):
            for method in METHODS:
                for (key, resumes), one in chosen.items():
                    clients = Clients(program, directory, one, method, by_password(method, certificates), resumes)
                    results[key, method, resumes].append(turn(clients))
                    delays[key, method, resumes].append(_beside(replace(clients, count=BESIDE)))
    return "\n\n".join([_introduction(settings), _table(results, delays), *compared(_aims(results))])


# --- servers -------------------------------------------------------------------------------------------------


@contextmanager
def serving_eap(
    directory: Path, certificates: Path, settings: Mapping[str, str | None] | None = None
) -> Iterator[Running]:
    """Run the service, and copy its certificates for clients and other servers."""
    with running_service(directory, settings, fresh=True) as service:
        service.ok("cert", "init", "--host", "radius.example.com")
        shutil.copytree(service.data_dir / "certs", certificates)
        service.add_client("bench", "127.0.0.1", SECRET)
        service.add_user(USER, PASSWORD)
        yield Running("Sallyport", service.ports.auth, service.process_id, None)


@contextmanager
def _freeradius(certificates: Path, directory: Path, *, resumes: bool, recording: bool) -> Iterator[Running]:
    port, database = free_port(), directory / "events.db"
    extras = records(database) if recording else Extras()
    if recording:
        create_database(database)
    write_users(directory, {USER: PASSWORD})
    sections = SECTIONS.format(
        directory=directory,
        listen=listen(port),
        certificates=certificates,
        fragment_size=MAX_FRAGMENT_SIZE,
        resumes="yes" if resumes else "no",
        modules=extras.modules,
        accepted=extras.accepted,
    )
    (directory / "sessions").mkdir()
    counter = partial(count_events, database) if recording else None
    with running_radiusd(directory, sections) as process:
        yield Running("FreeRADIUS, recording" if recording else "FreeRADIUS", port, process, counter)


@contextmanager
def _reserved_core() -> Iterator[set[int]]:
    """Return a core for the servers.

    If there is another core, this process and its later children do not use the returned one.
    """
    cores = os.sched_getaffinity(0)
    core = {min(cores)}
    os.sched_setaffinity(0, cores - core or core)
    try:
        yield core
    finally:
        os.sched_setaffinity(0, cores)


def _move(process_id: int, cores: set[int]) -> None:
    """Limit a server, with all its present and later threads, to these cores."""
    for process in process_tree(process_id):
        for thread in Path(f"/proc/{process}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)


def by_password(method: str, certificates: Path) -> str:
    """Return the lines for a wpa_supplicant network with a method of METHODS."""
    kind, inner = METHODS[method]
    values = {"identity": USER, "password": PASSWORD, "ca_cert": certificates / "ca.pem", "phase2": inner}
    return "\n".join([f"eap={kind}", *(f'{name}="{value}"' for name, value in values.items())])


# --- a turn ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Clients:
    """Stations that log in at a server repeatedly, `count` of them at a time.

    credentials: lines for a wpa_supplicant network. resumes: whether they resume a session from the second login on.
    logins: the number of logins of each station in a turn.
    """

    program: str
    directory: Path
    server: Running
    method: str
    credentials: str
    resumes: bool
    count: int = CLIENTS
    logins: int = LOGINS

    @contextmanager
    def at_work(self) -> Iterator[Sequence["subprocess.Popen[bytes]"]]:
        """Run all clients at the same time until they end. Raises BenchmarkError if a login failed."""
        file = self.directory / "eapol.conf"
        file.write_text(NETWORK.format(resumes=self.resumes, credentials=self.credentials))
        command = [self.program, "-c", str(file), "-a", "127.0.0.1", "-p", str(self.server.port), "-s", SECRET]
        command += ["-t", "60", "-r", str(self.logins - 1)]
        with ExitStack() as stack:
            clients = [
                subprocess.Popen(
                    [*command, "-M", f"02:00:00:00:00:{number:02x}"],
                    stdout=stack.enter_context(self._output(number).open("wb")),
                    stderr=subprocess.STDOUT,
                )
                for number in range(self.count)
            ]
            yield clients
            for client in clients:
                client.wait()
        for number in range(self.count):
            text = self._output(number).read_text(errors="replace")
            if "\nSUCCESS\n" not in text or "MPPE keys OK" not in text:
                raise BenchmarkError(f"{self.server.name}, {self.method}: a login failed\n{text[-1500:]}")

    def answers(self) -> float:
        """Return the number of answers to each login."""
        return self._output(0).read_text(errors="replace").count("Received RADIUS message") / self.logins

    def _output(self, number: int) -> Path:
        return self.directory / f"client{number}"


def turn(clients: Clients) -> Turn:
    """Measure one turn. Raises BenchmarkError if a login failed, or if the turn is void."""
    server, count = clients.server, clients.count * clients.logins
    events = server.count_events() if server.count_events else 0
    before, began = cpu_s(server.process_id), time.monotonic()
    with clients.at_work():
        pass
    took, cpu = time.monotonic() - began, cpu_s(server.process_id) - before
    recorded, answers = server.count_events() - events if server.count_events else count, clients.answers()
    if recorded < count:
        raise BenchmarkError(f"{server.name}, {clients.method}: {recorded} of {count} logins recorded; it is void")
    if clients.resumes and answers > MAX_RESUMED:
        raise BenchmarkError(f"{server.name}, {clients.method}: sessions are not resumed; the comparison is void")
    return Turn(count / took, answers, 1000 * cpu / count)


def _beside(clients: Clients) -> float:
    """Return the p99 of plain logins while the clients run, in milliseconds."""
    taken: list[float] = []
    with clients.at_work() as working, RadiusClient(clients.server.port, SECRET) as plain:
        while any(client.poll() is None for client in working):
            began = time.perf_counter()
            plain.login(USER, PASSWORD)
            taken.append(1000 * (time.perf_counter() - began))
            time.sleep(TRICKLE_S)
    return quantiles(taken, n=100)[98] if len(taken) > 1 else 0


# --- output --------------------------------------------------------------------------------------------------


def _introduction(settings: Settings) -> str:
    return (
        f"{CLIENTS} times {LOGINS} logins by eapol_test against {version()}, TLS 1.2, RSA of 2048 bits; "
        f"{settings.rounds} round(s). Recording: one device upsert and one event a login, on disk before the answer, "
        f"as Sallyport has it. Plain logins: one every 10 ms, beside {BESIDE} clients, in turns of their own. The "
        "server has a core of its own."
    )


def _table(results: Mapping[Case, Sequence[Turn]], delays: Mapping[Case, Sequence[float]]) -> str:
    headers = ["method", "session", "server", "logins/s", "answers each", "CPU ms each", "plain p99 ms"]
    rows = [
        [
            method,
            "resumed" if resumes else "full",
            key,
            spread([each.logins for each in turns], ".0f"),
            f"{turns[0].answers:.1f}",
            spread([each.cpu_ms for each in turns], ".2f"),
            spread(delays[key, method, resumes], ".1f"),
        ]
        for (key, method, resumes), turns in sorted(results.items(), key=lambda item: item[0][1:] + item[0][:1])
    ]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["left"] * 3 + ["right"] * 4)


def _aims(results: Mapping[Case, Sequence[Turn]]) -> list[Aim]:
    """Return the logins per CPU second, divided by those of each FreeRADIUS. Those of a server that was left out are
    missing."""
    found = []
    for method in METHODS:
        for resumes, aim in ((False, 0.9), (True, 0.65)):
            session = f"{method}, {'resumed' if resumes else 'full'}"
            for other, name, least in ((PLAIN, "FreeRADIUS", aim), (RECORDING, "FreeRADIUS recording", 1)):
                pairs = zip(
                    results.get((OURS, method, resumes), ()), results.get((other, method, resumes), ()), strict=False
                )
                ratios = [theirs.cpu_ms / ours.cpu_ms for ours, theirs in pairs]
                found.append(Aim(f"{session}: logins per CPU second / {name}", least, ratios))
    return [each for each in found if each.values]
