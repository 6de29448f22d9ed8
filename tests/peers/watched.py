"""A service after the demo's traffic and more, and a real Prometheus that has scraped it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sallyport.cli.connection import Connection
from sallyport.cli.demo_story import DemoRun
from sallyport.cli.line import Line
from sallyport.service.serve import Bound
from sallyport.settings.settings import load
from sallyport.settings.values import Address
from tests.areas.authorities.revocation.issuer import DAY, Issuer
from tests.peers.authority import Authority
from tests.peers.eapol import SUCCESS, eapol_test
from tests.peers.prometheus import Prometheus, scraping
from tests.peers.published import by_certificate, serving
from tests.running_service import RunningService, running_service

GRAPH = ("--kind", "graph", "--entra-tenant", "t", "--client-id", "c", "--no-check")
"""A directory that is never read."""


@dataclass(frozen=True)
class Watched:
    """A service after the demo's traffic, and its Prometheus."""

    service: RunningService
    prometheus: Prometheus


@contextmanager
def watched_service(directory: Path) -> Iterator[Watched]:
    """Yield a service with the demo's traffic, a device with a wrong secret, and an upstream server that is
    unreachable.

    directory: an empty directory.
    """
    settings = {"SALLYPORT_METRICS_TAG": "site", "SALLYPORT_EGRESS": "default,127.0.0.0/8"}
    with running_service(directory, settings) as service:
        add_certificates(service)
        with scraping(directory, service.ports.http) as prometheus:
            prometheus.wait_for('up{job="sallyport"} == 1')
            send_the_demo(service)
            use_a_wrong_secret(service, prometheus)
            pass_on(service)
            import_people(service, directory)
            check_revocation(service, directory, prometheus)
            service.ok("db", "backup", str(directory / "copy.db"))
            prometheus.wait_for("sum(sallyport_client_requests_total{client='forgetful'}) >= 12")
            prometheus.wait_for("sallyport_backup_last_success_timestamp_seconds > 0")
            yield Watched(service, prometheus)


def add_certificates(service: RunningService) -> None:
    """Make the service's certificates, add a domain with an authority for its LDAP servers and a directory, and restart
    the service, which reads the certificates of domains and the ages of directories at its start."""
    service.ok("cert", "init", "--host", "radius.example.org")
    body = {"orgId": 1, "tenantId": 1, "domainId": service.add_domain("secure"), "firstFactor": "ldap"}
    ldap = {"servers": ["ldaps://192.0.2.1"], "baseDN": "dc=example,dc=org", "caCertificate": Authority("corp").pem}
    service.post("/ad/SetFirstFactor", {**body, "ldap": ldap})
    service.ok("directory", "add", "cloud", "--domain", "secure", *GRAPH)
    service.stop()
    service.start()


def send_the_demo(service: RunningService) -> None:
    """Send the demo's traffic to this service. Assert that each answer is the expected one."""
    settings = load(None, service.environ)
    auth, acct, http = (
        [Address("127.0.0.1", port)] for port in (service.ports.auth, service.ports.acct, service.ports.http)
    )
    line = Line(lambda: Connection(settings=settings))
    with closing(line.connection):
        assert DemoRun(line, settings, Bound(radius_auth=auth, radius_acct=acct, http=http)).tell() == 0


def use_a_wrong_secret(service: RunningService, prometheus: Prometheus) -> None:
    """Add a client whose device has another secret."""
    service.add_client("forgetful", "127.77.0.1", b"the right secret")
    prometheus.wait_for("sallyport_client_requests_total{client='forgetful', outcome='bad_message_authenticator'} == 0")
    with service.radius("the wrong secret", source="127.77.0.1") as device:
        for _ in range(12):
            device.send(device.packet("ann", "hello"))


def pass_on(service: RunningService) -> None:
    """Add a domain that passes its logins on to a server that does not run."""
    domain = service.add_domain("far", realms=["far"])
    service.add_client("far", "127.77.0.2", b"the right secret", "far")
    servers = [{"host": "127.0.0.1", "port": 9, "secret": "upstream secret"}]
    body = {"orgId": 1, "tenantId": 1, "domainId": domain, "firstFactor": "radius"}
    service.post("/ad/SetFirstFactor", {**body, "radius": {"servers": servers, "responseWindowSeconds": 1}})
    with service.radius("the right secret", source="127.77.0.2") as device:
        device.login("ann", "hello")


def check_revocation(service: RunningService, directory: Path, prometheus: Prometheus) -> None:
    """Log in with a certificate of an authority that publishes a list and answers OCSP, until it answers no more. The
    list of another authority is never there."""
    now = datetime.now(UTC).replace(microsecond=0)
    service.add_domain("certificates")
    service.add_user("ann", "correct horse", "certificates")
    service.add_client("certificates", "127.77.0.3", b"the right secret", "certificates")
    issuer = Issuer.new()
    file = directory / "authority.pem"
    file.write_text(issuer.pem)
    with serving() as web:
        client = issuer.client("ann", responder=f"{web.url}/responder")
        web.bodies["/list.crl"] = issuer.crl(1, since=now, until=now + DAY)
        web.bodies["/responder"] = issuer.answer(client.certificate, issuer, since=now, until=now + DAY)
        of_domain = ("--domain", "certificates", "--file", str(file), "--crl-address", f"{web.url}/list.crl")
        service.ok("authority", "add", "published", *of_domain)
        other = directory / "other.pem"
        other.write_text(Issuer.new("Other CA").pem)
        of_domain = ("--domain", "certificates", "--file", str(other), "--crl-address", f"{web.url}/missing.crl")
        service.ok("authority", "add", "unpublished", *of_domain)
        prometheus.wait_for("sallyport_revocation_list_next_update_timestamp_seconds > 0")
        network = by_certificate(directory, client, service.data_dir / "certs" / "ca.pem")
        output = eapol_test(directory, service.ports.auth, "the right secret", network, "-A", "127.77.0.3")
    assert SUCCESS in output
    service.ok("authority", "lists", "published", "--fetch")


def import_people(service: RunningService, directory: Path) -> None:
    """Import a file with one person, and a malformed file."""
    path = directory / "people.ldif"
    path.write_text("dn: uid=ann,dc=x\nobjectClass: person\nuid: ann\ncn: Ann\nsn: Ann\n")
    command = ("directory", "import-ldif", str(path), "--domain", "far", "--wait")
    service.ok(*command)
    path.write_text("dn: uid=ann\nno line of LDIF\n")
    assert service.cli(*command).returncode == 1
