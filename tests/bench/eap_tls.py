"""EAP-TLS logins whose authority has an OCSP responder, beside logins without a check of revocation.

Three services run. `openssl ocsp` answers the first one, once for the only certificate. The others check nothing.
eapol_test makes full handshakes with each of them in turns. The result is the service's processor time for a login,
relative to that without a check. The second service without a check shows the spread of equal services. A turn is void
if the responder was not asked, if it was asked again, or if the login's event has no good state.
"""

import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tabulate import tabulate

from tests.areas.authorities.revocation.issuer import Issuer
from tests.peers.pki import OpensslAuthority
from tests.peers.published import by_certificate
from tests.running_service import RunningService, running_service

from .child import SECRET, Running
from .eap import USER, Clients, Turn, turn
from .settings import BenchmarkError, Settings
from .spread import Aim, compared, spread

ROUNDS = 9
CLIENTS, LOGINS = 48, 25
CHECKED, PLAIN, AGAIN = "OCSP", "no check", "no check again"
MAX_RATIO = 1.05


def run(settings: Settings) -> str:
    """Measure the three services and return Markdown. Raises BenchmarkError if a login fails or a turn is void."""
    program = shutil.which("eapol_test")
    if program is None:
        raise BenchmarkError("eapol_test is missing: apt-get install eapoltest")
    results = defaultdict[str, list[Turn]](list)
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name, ExitStack() as stack:
        directory = Path(name)
        issuer = Issuer.new()
        client = issuer.client(USER)
        authority = OpensslAuthority(directory, issuer, [client.certificate])
        responder = stack.enter_context(authority.responding("-ndays", "1"))
        stations = {}
        for number, key in enumerate((CHECKED, PLAIN, AGAIN)):
            own = directory / str(number)
            own.mkdir()
            service = stack.enter_context(_service(own, authority.certificate, responder if key == CHECKED else ""))
            credentials = by_certificate(own, client, service.data_dir / "certs" / "ca.pem")
            running = Running(key, service.ports.auth, service.process_id, None)
            stations[key] = service, Clients(program, own, running, "TLS", credentials, False, CLIENTS, LOGINS)
        for service, clients in stations.values():
            turn(clients)  # the first login of a service asks, and the others wait for the answer
            _check(service, clients.server.name)
        asked = authority.requests
        for number in range(ROUNDS):
            for key in (CHECKED, PLAIN, AGAIN) if number % 2 else (AGAIN, PLAIN, CHECKED):
                results[key].append(turn(stations[key][1]))
        for service, clients in stations.values():
            _check(service, clients.server.name)
        if authority.requests != asked:
            raise BenchmarkError("the responder was asked again; the comparison is void")
    return "\n\n".join([_table(results), *compared(_aims(results))])


@contextmanager
def _service(directory: Path, authority: Path, responder: str) -> Iterator[RunningService]:
    """Run a service whose domain has an authority. responder: the address of its OCSP responder, or empty."""
    settings = {"SALLYPORT_EGRESS": "default,127.0.0.0/8", "SALLYPORT_LOG_LOGINS": "false"}
    with running_service(directory, settings, fresh=True) as service:
        service.ok("cert", "init", "--host", "radius.example.com")
        service.add_client("bench", "127.0.0.1", SECRET)
        service.add_user(USER, "unused")
        given = ["--ocsp-address", responder, "--revocation", "hard"] if responder else []
        service.ok("authority", "add", "bench", "--domain", "default", "--file", str(authority), *given)
        yield service


def _check(service: RunningService, key: str) -> None:
    """Raise BenchmarkError if the last login has not been checked as it should have been."""
    ((reason, text),) = service.rows("select reason, revocation from events order by id desc limit 1")
    if reason != "no provider" or ("OCSP" in (text or "")) is not (key == CHECKED):
        raise BenchmarkError(f"{key}: {reason}, {text}; the comparison is void")


def _table(results: Mapping[str, Sequence[Turn]]) -> str:
    rows = [
        [
            key,
            spread([each.logins for each in turns], ".0f"),
            spread([each.cpu_ms for each in turns], ".2f"),
            spread(_ratios(results, key), ".2f"),
        ]
        for key, turns in sorted(results.items())
    ]
    headers = ["authority", "logins/s", "CPU ms each", f"CPU / {PLAIN}"]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["left", *["right"] * 3])


def _ratios(results: Mapping[str, Sequence[Turn]], key: str) -> list[float]:
    """Return the processor time for a login in each round, divided by that of the service without a check."""
    return [one.cpu_ms / plain.cpu_ms for one, plain in zip(results[key], results[PLAIN], strict=True)]


def _aims(results: Mapping[str, Sequence[Turn]]) -> list[Aim]:
    return [Aim(f"{CHECKED}: CPU for a login / {PLAIN}", MAX_RATIO, _ratios(results, CHECKED), most=True)]
