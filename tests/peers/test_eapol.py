"""eapol_test, which is wpa_supplicant without a radio, logs in by every method.

`MPPE keys OK: 1` says that its keys are those of the Access-Accept.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
import trio
from cryptography import x509

from sallyport.radius.eap.certificate import UserNames
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.radius.eap.methods import ORDER, Terms
from sallyport.radius.eap.model import Done, Password, Question, Resumed, Verdict
from sallyport.radius.eap.server import TlsConfiguration, TlsServer
from sallyport.radius.eap.server_certificate import ServerCertificate
from tests.peers.programs import find, needs
from tests.radius.eap.certificates import NOW, Authority, Issued, upn
from tests.radius.eap.nas import SECRET, EapServer
from tests.radius.eap.users import EVERYTHING, Users

pytestmark = [pytest.mark.peer, needs("eapol_test")]

USER, PASSWORD = b"ann", b"correct horse"
LIMIT_S = 60
TLS13 = "tls_disable_tlsv1_3=0"
TLS12 = "tls_disable_tlsv1_3=1"
SPOKEN = {TLS12: "SSL: Using TLS version TLSv1.2", TLS13: "SSL: Using TLS version TLSv1.3"}
TICKETS = "tls_disable_session_ticket=0"


@dataclass(frozen=True)
class EapolResult:
    """The result of eapol_test: its output, its exit status, and the outcomes on the server."""

    output: str
    code: int
    done: Sequence[Done]


class Bench:
    """Certificates and the configuration of a server, with eapol_test as its client."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority(directory)
        server = self.authority.certificate("radius.example.com")
        self.configuration = TlsConfiguration(
            ServerCertificate.read(server.file, server.file), ca_file=self.authority.file
        )
        self.users = Users({USER: PASSWORD})
        self.order: Sequence[int] = ORDER
        self.has_tls = True
        self.between_s = 0.0

    async def run(
        self, method: str, *lines: str, options: Sequence[str] = (), password: bytes = PASSWORD
    ) -> EapolResult:
        """Log in.

        method: the EAP method, as in the configuration of wpa_supplicant. lines: further lines of that configuration.
        """
        network = [
            "key_mgmt=IEEE8021X", f"eap={method}", f'password="{password.decode()}"',
            f'ca_cert="{self.authority.file}"', *lines,
        ]  # fmt: skip
        if not any(line.startswith("identity=") for line in lines):
            network.append(f'identity="{USER.decode()}"')
        text = "network={\n" + "\n".join(f"    {line}" for line in network) + "\n}\n"
        file = self.directory / "network.conf"
        file.write_text(text)
        tls = TlsServer(self.configuration) if self.has_tls else None
        server = EapServer(Terms(tls, EVERYTHING, self.order), self.users, between_s=self.between_s)
        with trio.fail_after(LIMIT_S):
            async with serving(server) as port:
                command = [find("eapol_test"), "-c", str(file), "-a", "127.0.0.1", "-p", str(port)]
                command += ["-s", SECRET.decode(), "-t", "30", *options]
                done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
        return EapolResult(done.stdout.decode(errors="replace"), done.returncode, server.done)

    def shows(self, issued: Issued) -> tuple[str, str]:
        """Return the configuration lines for a client certificate."""
        return f'client_cert="{issued.file}"', f'private_key="{issued.file}"'


@asynccontextmanager
async def serving(server: EapServer) -> AsyncIterator[int]:
    """Answer datagrams on a free port until the block ends."""
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as sock:
        await sock.bind(("127.0.0.1", 0))

        async def answer() -> None:
            while True:
                datagram, source = await sock.recvfrom(4096)
                await sock.sendto(server.answer(datagram), source)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            yield sock.getsockname()[1]
            nursery.cancel_scope.cancel()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Everything for one test."""
    return Bench(tmp_path)


def is_accepted(result: EapolResult, times: int = 1) -> bool:
    """Return whether the supplicant accepted the login and has the keys of the Access-Accept."""
    good = result.code == 0 and result.output.rstrip().endswith("SUCCESS")
    return good and f"MPPE keys OK: {times}  mismatch: 0" in result.output


PLAIN = {
    "md5": ("MD5", "eap-md5"),
    "mschapv2": ("MSCHAPV2", "eap-mschapv2"),
}
TUNNELLED = {
    "ttls-pap": ("TTLS", 'phase2="auth=PAP"'),
    "ttls-chap": ("TTLS", 'phase2="auth=CHAP"'),
    "ttls-mschapv2": ("TTLS", 'phase2="auth=MSCHAPV2"'),
    "ttls-eap-mschapv2": ("TTLS", 'phase2="autheap=MSCHAPV2"'),
    "ttls-eap-md5": ("TTLS", 'phase2="autheap=MD5"'),
    "ttls-eap-gtc": ("TTLS", 'phase2="autheap=GTC"'),
    "peap-mschapv2": ("PEAP", 'phase2="auth=MSCHAPV2"'),
    "peap-gtc": ("PEAP", 'phase2="auth=GTC"'),
}


@pytest.mark.parametrize("method", PLAIN)
async def test_without_a_tunnel(bench: Bench, method: str) -> None:
    """MD5 logs in without keys, and MS-CHAPv2 logs in with keys. Neither method needs a server certificate."""
    bench.has_tls = False
    result = await bench.run(PLAIN[method][0], options=["-n"] if method == "md5" else [])
    assert result.code == 0, result.output
    assert [(each.success, each.method, each.user) for each in result.done] == [(True, PLAIN[method][1], USER)]
    wrong = await bench.run(PLAIN[method][0], password=b"wrong")
    assert wrong.code != 0
    assert [(each.success, each.method) for each in wrong.done] == [(False, PLAIN[method][1])]


@pytest.mark.parametrize("version", [TLS12, TLS13])
@pytest.mark.parametrize("method", TUNNELLED)
async def test_in_a_tunnel(bench: Bench, method: str, version: str) -> None:
    """The right password logs in the inner user with the right keys. The outer name is not used."""
    name, phase2 = TUNNELLED[method]
    lines = phase2, f'phase1="{version}"', 'anonymous_identity="anonymous"'
    result = await bench.run(name, *lines)
    assert is_accepted(result), result.output
    assert SPOKEN[version] in result.output
    assert [(each.success, each.method, each.user) for each in result.done] == [(True, f"eap-{method}", USER)]
    wrong = await bench.run(name, *lines, password=b"wrong")
    assert wrong.code != 0
    assert [(each.success, each.method, each.user) for each in wrong.done] == [(False, f"eap-{method}", USER)]


@pytest.mark.parametrize("version", [TLS12, TLS13])
async def test_a_certificate_logs_in_its_user(bench: Bench, version: str) -> None:
    """EAP-TLS logs in the user whose name is in the certificate, whatever identity the client sends.

    An unknown name is rejected.
    """
    issued = bench.authority.certificate("a laptop", [upn("ann"), x509.DNSName("laptop.example.com")])
    lines = *bench.shows(issued), f'phase1="{version}"', 'identity="anonymous"'
    result = await bench.run("TLS", *lines)
    assert is_accepted(result), result.output
    assert SPOKEN[version] in result.output
    assert [(each.success, each.method, each.user) for each in result.done] == [(True, "eap-tls", USER)]
    bench.configuration = replace(bench.configuration, user_names=UserNames((NamedBy.DNS,)))
    other = await bench.run("TLS", *lines)
    assert other.code != 0
    assert [(each.success, each.user) for each in other.done] == [(False, b"laptop.example.com")]


@pytest.mark.parametrize("version", [TLS12, TLS13])
async def test_certificates_that_are_refused(bench: Bench, version: str) -> None:
    """A certificate that is revoked, expired or issued by another authority is rejected with the reason."""
    revoked = bench.authority.certificate("ann")
    good = bench.authority.certificate("ann")
    old = bench.authority.certificate("ann", until=NOW - timedelta(hours=1))
    elsewhere = bench.directory / "elsewhere"
    elsewhere.mkdir()
    foreign = Authority(elsewhere, "another authority").certificate("ann")
    lists = bench.authority.revocations(revoked.certificate)
    bench.configuration = replace(bench.configuration, crl_file=lists)
    assert is_accepted(await bench.run("TLS", *bench.shows(good), f'phase1="{version}"'))
    for issued, reason in ((revoked, "it is revoked"), (old, "it has expired"), (foreign, "its issuer is unknown")):
        result = await bench.run("TLS", *bench.shows(issued), f'phase1="{version}"')
        assert result.code != 0
        assert [(each.success, each.reason) for each in result.done] == [
            (False, f"the client's certificate is refused: {reason}")
        ]


@pytest.mark.parametrize("version", [TLS12, TLS13])
@pytest.mark.parametrize("size", [100, 1020, 3000])
async def test_fragments_of_any_size(bench: Bench, size: int, version: str) -> None:
    """Long certificates are sent in fragments of any size, in both directions."""
    long = 3000 if size > 100 else 500  # wpa_supplicant stops a login after fifty short messages in a row
    server = bench.authority.certificate("radius.example.com", padding=long)
    bench.configuration = replace(
        bench.configuration, certificate=ServerCertificate.read(server.file, server.file), fragment_size=size
    )
    lines = f"fragment_size={size}", f'phase1="{version}"'
    issued = bench.authority.certificate("ann", padding=long)
    assert is_accepted(result := await bench.run("TLS", *bench.shows(issued), *lines)), result.output
    assert is_accepted(result := await bench.run("PEAP", 'phase2="auth=MSCHAPV2"', *lines)), result.output


RESUMED = {
    "tls": ("TLS", "", "eap-tls"),
    "ttls": ("TTLS", 'phase2="auth=PAP"', "eap-ttls-resumed"),
    "peap": ("PEAP", 'phase2="auth=MSCHAPV2"', "eap-peap-resumed"),
}


@pytest.mark.parametrize("version", [TLS12, f"{TLS12} {TICKETS}", TLS13])
@pytest.mark.parametrize("method", RESUMED)
async def test_a_session_is_resumed(bench: Bench, method: str, version: str) -> None:
    """The next logins of a client resume the session without a password.

    Each has its own keys, and the check receives the user of the session.
    """
    name, phase2, again = RESUMED[method]
    issued = bench.authority.certificate("ann")
    lines = *bench.shows(issued), phase2, f'phase1="{version}"'
    result = await bench.run(name, *lines, options=["-r", "2"])
    assert is_accepted(result, 3), result.output
    assert [(each.success, each.user) for each in result.done] == [(True, USER)] * 3
    assert [each.method for each in result.done[1:]] == [again, again]
    if method != "tls":
        assert bench.users.asked[1:] == [Resumed(USER), Resumed(USER)]


@pytest.mark.parametrize("version", [TLS12, TLS13])
@pytest.mark.parametrize("method", RESUMED)
async def test_a_disabled_user_does_not_resume(bench: Bench, method: str, version: str) -> None:
    """The session of a disabled user is not resumed."""
    name, phase2, _ = RESUMED[method]
    issued = bench.authority.certificate("ann")
    bench.users = DisabledAfterLogin({USER: PASSWORD})
    result = await bench.run(name, *bench.shows(issued), phase2, f'phase1="{version}"', options=["-r", "1"])
    assert result.code != 0
    assert [each.success for each in result.done] == [True, False]


@pytest.mark.parametrize("version", [TLS12, f"{TLS12} {TICKETS}", TLS13])
@pytest.mark.parametrize(("method", "inner"), [("PEAP", "mschapv2"), ("TTLS", "pap")])
async def test_an_invalid_session(bench: Bench, method: str, inner: str, version: str) -> None:
    """If a session is no longer valid, the same conversation asks for the password, and the right password logs in."""
    bench.users = Changing({USER: PASSWORD})
    result = await bench.run(method, f'phase2="auth={inner.upper()}"', f'phase1="{version}"', options=["-r", "1"])
    assert is_accepted(result, 2), result.output
    assert [each.method for each in result.done] == [f"eap-{method.lower()}-{inner}"] * 2
    assert Resumed(USER) in bench.users.asked


@pytest.mark.parametrize("version", [TLS12, f"{TLS12} {TICKETS}", TLS13])
async def test_a_session_that_grew_old(bench: Bench, version: str) -> None:
    """With TLS 1.3 each login gives a new ticket, so that the client still has one when the password check is too old.

    The client is then asked for the password.
    """
    bench.between_s = 1801
    result = await bench.run("TTLS", 'phase2="auth=PAP"', f'phase1="{version}"', options=["-r", "2"])
    assert is_accepted(result, 3), result.output
    assert [each.method for each in result.done] == ["eap-ttls-pap", "eap-ttls-resumed", "eap-ttls-pap"]


async def test_nothing_is_resumed_where_it_is_turned_off(bench: Bench) -> None:
    """If the lifetime of sessions is 0, each login needs its password."""
    bench.configuration = replace(bench.configuration, resume_s=0)
    result = await bench.run("PEAP", 'phase2="auth=MSCHAPV2"', f'phase1="{TLS13}"', options=["-r", "1"])
    assert is_accepted(result, 2), result.output
    assert [each.method for each in result.done] == ["eap-peap-mschapv2"] * 2


@pytest.mark.parametrize(("name", "phase2"), [("PEAP", "auth=GTC"), ("TTLS", "autheap=GTC")])
async def test_a_code_is_asked_for_by_gtc(bench: Bench, name: str, phase2: str) -> None:
    """GTC asks for a code after the password, and the code is checked separately."""
    bench.users = Users({USER: PASSWORD}, codes={USER: PASSWORD})  # eapol_test types the password again
    assert is_accepted(result := await bench.run(name, f'phase2="{phase2}"')), result.output
    assert [each.step for each in bench.users.asked if isinstance(each, Password)] == [0, 1]
    bench.users = Users({USER: PASSWORD}, codes={USER: b"123456"})
    assert (await bench.run(name, f'phase2="{phase2}"')).code != 0


async def test_the_client_may_choose_any_offered_method(bench: Bench) -> None:
    """A client may choose another method that is offered.

    If its method is not offered, the login ends with that reason.
    """
    assert is_accepted(await bench.run("TTLS PEAP", 'phase2="auth=MSCHAPV2"'))
    bench.has_tls = False
    result = await bench.run("PEAP", 'phase2="auth=MSCHAPV2"')
    assert [(each.success, each.reason) for each in result.done] == [
        (False, "the client wants a method that is not offered: peap (there is no server certificate)")
    ]


async def test_a_client_that_does_not_trust_the_server(bench: Bench) -> None:
    """The reason contains the client's TLS alert."""
    elsewhere = bench.directory / "elsewhere"
    elsewhere.mkdir()
    foreign = Authority(elsewhere, "another authority").certificate("radius.example.com")
    bench.configuration = replace(bench.configuration, certificate=ServerCertificate.read(foreign.file, foreign.file))
    result = await bench.run("PEAP", 'phase2="auth=MSCHAPV2"')
    assert result.code != 0
    assert [(each.success, "unknown ca" in each.reason) for each in result.done] == [(False, True)]


class Changing(Users):
    """Users whose passwords change before the next login."""

    def verdict(self, question: Question) -> Verdict:
        """Refuse every session."""
        verdict = super().verdict(question)
        return Verdict(False) if isinstance(question, Resumed) else verdict


class DisabledAfterLogin(Users):
    """Users that are disabled after their login."""

    def verdict(self, question: Question) -> Verdict:
        """Accept each user once."""
        verdict = super().verdict(question)
        if verdict.right:
            self.disabled.add(question.user)
        return verdict
