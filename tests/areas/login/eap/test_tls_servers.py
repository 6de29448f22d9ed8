"""Tests of the TLS servers: one with the installation's certificate, and one for each other server certificate."""

import threading
from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from cryptography import x509
from structlog.testing import capture_logs

from sallyport.areas.domains.domain import Domain
from sallyport.areas.login.eap.tls_servers import MAX_SERVERS, TlsServers
from sallyport.certs.credentials import Credentials
from sallyport.radius.eap.server import TlsServer
from sallyport.radius.eap.server_certificate import ServerCertificate
from tests.areas.authorities.made import MadeAuthority, issued
from tests.radius.eap.certificates import Authority

ONE, TWO = Domain(1, 1, "one"), Domain(2, 2, "two")


@dataclass
class Changeable:
    """Certificates that a test changes, and the servers that use them."""

    authority: Authority
    files: Credentials | None = None
    chosen: dict[int, dict[str, ServerCertificate]] = field(default_factory=dict)
    changes: int = 0
    dropped: list[Container[TlsServer]] = field(default_factory=list)

    def certificate(self, name: str) -> ServerCertificate:
        """Return a new server certificate."""
        file = self.authority.certificate(name).file
        return ServerCertificate.read(file, file)

    def use(self, name: str) -> Path:
        """Give the installation a new certificate. Return its file."""
        file = self.authority.certificate(name).file
        self.files = Credentials(file, file, self.authority.file)
        return file

    def changed(self, servers: Container[TlsServer] | None) -> None:
        """Count the changes after which no server is used any more, and note the servers that are dropped."""
        self.changes += servers is None
        self.dropped += [] if servers is None else [servers]

    def servers(self) -> TlsServers:
        """Return servers with these certificates."""
        return TlsServers(lambda: self.files, self.chosen.get, self.changed)


def test_each_certificate_has_its_server(tmp_path: Path) -> None:
    """A conversation gets the server of its certificate, and otherwise that of the installation."""
    site = Changeable(Authority(tmp_path))
    site.use("radius.example.com")
    own = site.certificate("radius.one.example")
    site.chosen[1] = {"one.example": own}
    servers = site.servers()
    found, default = servers.server(ONE, b"ann@ONE.example"), servers.server(TWO, b"bob@one.example")
    assert found is not None and default is not None
    assert found.configuration.certificate is own
    assert default.configuration.certificate is not own
    assert servers.server(ONE, b"one.EXAMPLE\\ann") is found
    assert found.takes_certificates
    for other in (b"", b"ann", b"ann@two.example", b"ann@\xff"):
        assert servers.server(ONE, other) is default


def test_a_domain_has_a_certificate_for_its_other_realms(tmp_path: Path) -> None:
    """The certificate of the whole domain is for the realms that have none, and for identities without a realm."""
    site = Changeable(Authority(tmp_path))
    own, of_realm = site.certificate("radius.example"), site.certificate("radius.one.example")
    site.chosen[1] = {"": own, "one.example": of_realm}
    servers = site.servers()
    chosen = [servers.server(ONE, each) for each in (b"ann@one.example", b"ann@one", b"", b"@")]
    assert [each and each.configuration.certificate for each in chosen] == [of_realm, own, own, own]


def test_a_domain_needs_no_certificate_of_the_installation(tmp_path: Path) -> None:
    """Without a certificate of the installation, the domains with a certificate have a server, and others have none."""
    site = Changeable(Authority(tmp_path))
    site.chosen[1] = {"": site.certificate("radius.one.example")}
    servers = site.servers()
    assert servers.server(ONE, b"") is not None
    assert servers.server(TWO, b"") is None


def test_an_unusable_certificate_keeps_the_previous_server(tmp_path: Path) -> None:
    """If the files are unusable, the previous certificate stays in use, and the log names the file. A later change is
    used at once."""
    site = Changeable(Authority(tmp_path))
    site.use("old.example.com")
    servers = site.servers()
    old = servers.server(ONE, b"")
    site.use("new.example.com").write_text("nothing")
    with capture_logs() as logs:
        assert servers.server(ONE, b"") is old
    assert [each["event"] for each in logs] == ["eap_certificate_unusable"]
    site.use("next.example.com")
    assert servers.server(ONE, b"") is not old
    assert site.changes == 3


def test_intermediates_of_the_authorities_complete_the_chain(tmp_path: Path) -> None:
    """A file with the server's certificate alone is sent with the intermediates of `eap_ca`, and without the root. An
    authority that only has the issuer's name is not sent."""
    root = MadeAuthority("Root")
    policy, liar = MadeAuthority("Policy", root), MadeAuthority("Issuing", root)
    issuing = MadeAuthority("Issuing", policy)
    own = issued(issuing, tmp_path / "server.pem", "radius.example.com")
    everything = tmp_path / "everything.pem"
    everything.write_text("".join(each.pem for each in (liar, root, issuing, policy)))
    site = Changeable(Authority(tmp_path), Credentials(own.file, own.file, everything))
    server = site.servers().server(ONE, b"")
    assert server is not None
    chain = (own.certificate, issuing.certificate, policy.certificate)
    assert server.configuration.certificate.chain == chain


def test_a_tenant_replaces_only_its_own_servers(tmp_path: Path) -> None:
    """A tenant with more certificates than fit replaces its own servers. The server of another tenant stays."""
    site = Changeable(Authority(tmp_path))
    servers, other = site.servers(), site.certificate("two.example")
    site.chosen[2] = {"": other}
    kept = servers.server(TWO, b"")
    first = site.certificate("one.example")
    for number in range(MAX_SERVERS + 2):
        site.chosen[1] = {"": ServerCertificate(first.chain, first.key)}
        assert servers.server(ONE, b"%d" % number) is not None
    assert servers.server(TWO, b"") is kept


class NotedChain(tuple[x509.Certificate, ...]):
    """A chain that notes the threads in which it is read."""

    threads: set[int]

    def __iter__(self) -> Iterator[x509.Certificate]:
        """Note the thread, and iterate over the certificates."""
        self.threads.add(threading.get_ident())
        return super().__iter__()


async def test_a_server_is_made_in_a_worker_thread(tmp_path: Path) -> None:
    """A conversation that needs a new server waits for a worker thread. The next one does not wait."""
    site = Changeable(Authority(tmp_path))
    site.use("radius.example.com")
    servers, own = site.servers(), site.certificate("radius.one.example")
    chain = NotedChain(own.chain)
    chain.threads = set()
    site.chosen[1] = {"": replace(own, chain=chain)}
    assert not servers.has(ONE, b"")
    assert not servers.has(TWO, b"")
    await servers.prepare(ONE, b"")
    assert servers.has(ONE, b"")
    assert servers.has(TWO, b"")
    assert servers.server(ONE, b"") is not servers.server(TWO, b"")
    assert chain.threads
    assert threading.get_ident() not in chain.threads


def test_the_servers_share_the_revocation_lists(tmp_path: Path) -> None:
    """The files with the authorities and their lists are read once, also for the servers that are made later."""
    site = Changeable(Authority(tmp_path))
    file = site.use("radius.example.com")
    lists = site.authority.revocations()
    site.files = Credentials(file, file, site.authority.file, lists)
    servers, own = site.servers(), site.certificate("radius.one.example")
    site.chosen[1] = {"": own}
    assert servers.server(TWO, b"") is not None
    lists.unlink()
    found = servers.server(ONE, b"")
    assert found is not None
    assert found.configuration.certificate is own
    assert found.takes_certificates


def test_the_server_of_a_replaced_certificate_is_dropped(tmp_path: Path) -> None:
    """It is dropped at once, and not when another server needs its place. A server in use is the last to be dropped."""
    site = Changeable(Authority(tmp_path))
    servers, first = site.servers(), site.certificate("one.example")
    site.chosen[1] = {"": first}
    dropped = servers.server(ONE, b"")
    servers.forget([first, site.certificate("other.example")])
    assert site.dropped == [{dropped}]
    assert servers.server(ONE, b"") is not dropped
    kept = servers.server(ONE, b"")
    for number in range(MAX_SERVERS + 2):
        site.chosen[1] = {"": first, "r.example": ServerCertificate(first.chain, first.key)}
        assert servers.server(ONE, b"%d@r.example" % number) is not None
        assert servers.server(ONE, b"") is kept
