"""eapol_test with certificates whose authority publishes lists and answers OCSP, in the modes soft and hard.

The responses of openssl and certomancer themselves are in test_revocation.py.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509 import ocsp

from sallyport.areas.authorities.authority import Revocation
from tests.areas.authorities.revocation.issuer import DAY, Issuer, point, with_entries
from tests.peers.eapol import SUCCESS, eapol_test
from tests.peers.programs import needs
from tests.peers.published import Web, by_certificate, serving
from tests.running_service import RunningService, running_service

pytestmark = [pytest.mark.peer, needs("eapol_test")]

SECRET = "between NAS and server"
HOUR = timedelta(hours=1)
MANY = 450_000
"""About the number of entries of a list of 20 MiB."""
REVOKED, UNKNOWN = "client certificate revoked", "it is unknown whether the client certificate is revoked"
MODES = pytest.mark.parametrize("mode", list(Revocation))


class Site:
    """A running service whose domain has an authority for each mode."""

    def __init__(self, service: RunningService, web: Web, directory: Path) -> None:
        self.service, self.web = service, web
        self.now = datetime.now(UTC).replace(microsecond=0)
        names = [f"{mode}-{kind}" for mode in Revocation for kind in ("ocsp", "delta", "late", "large")]
        self.issuers = {name: Issuer.new(name) for name in names}
        service.ok("cert", "init", "--host", "radius.example.com")
        service.add_client("nas", "127.0.0.1", SECRET)
        service.add_user("ann", "correct horse")
        for name, issuer in self.issuers.items():
            file = directory / f"{name}.pem"
            file.write_text(issuer.pem)
            service.ok(
                "authority", "add", name, "--domain", "default", "--file", str(file),
                "--revocation", name.partition("-")[0], "--ocsp-nonce",
            )  # fmt: skip

    def client(self, authority: str, place: str, *, by_list: bool = False, serial: int = 0) -> Issuer:
        """Return a certificate of ann whose list or responder is at a path. serial: its number, or 0 for any."""
        address = f"{self.web.url}{place}"
        if by_list:
            return self.issuers[authority].client("ann", serial=serial, lists=[point(address)])
        return self.issuers[authority].client("ann", responder=address)

    def log_in(self, directory: Path, client: Issuer) -> tuple[bool, str, str]:
        """Log in. Return whether eapol_test succeeded, the reason, and the sources that were asked."""
        network = by_certificate(directory, client, self.service.data_dir / "certs" / "ca.pem")
        output = eapol_test(directory, self.service.ports.auth, SECRET, network)
        ((reason, text),) = self.service.rows("select reason, revocation from events order by id desc limit 1")
        return SUCCESS in output, str(reason), str(text)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield one service for all tests. It may connect to this machine."""
    settings = {"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_EGRESS": "default,127.0.0.0/8"}
    with serving() as web, running_service(tmp_path_factory.mktemp("service"), settings) as service:
        yield Site(service, web, tmp_path_factory.mktemp("authorities"))


def responses(site: Site, issuer: Issuer, certificate: x509.Certificate) -> dict[str, tuple[bytes | None, str]]:
    """Return responses that leave the state unknown, each with a part of the event's text."""
    now = site.now
    soon = now + HOUR
    return {
        "unknown": (
            issuer.answer(certificate, issuer, ocsp.OCSPCertStatus.UNKNOWN, since=now, until=soon),
            ": unknown",
        ),
        "expired": (issuer.answer(certificate, issuer, since=now - DAY, until=now - HOUR), "has expired"),
        "foreign": (Issuer.new().answer(certificate, issuer, since=now, until=soon), "neither the issuer"),
        "wrong nonce": (
            issuer.answer(certificate, issuer, nonce=bytes(32), since=now, until=soon),
            "nonce of another",
        ),
        "old without nonce": (
            issuer.answer(certificate, issuer, since=now - 2 * HOUR, until=soon),
            "no nonce and is old",
        ),
        "dead": (None, "no answer in 2 s"),
        "slow": (issuer.answer(certificate, issuer, since=now, until=soon), "no answer in 2 s"),
    }


@MODES
def test_responses_that_leave_the_state_unknown(site: Site, tmp_path: Path, mode: Revocation) -> None:
    """Soft accepts and hard refuses, and the event has the error. Other logins are not delayed by a dead responder. A
    slow one stops in the middle of its response."""
    names = ("unknown", "expired", "foreign", "wrong nonce", "old without nonce", "dead", "slow")
    for number, name in enumerate(names):
        place = f"/{mode}/{number}"
        if name == "slow":
            site.web.stalled.add(place)
        client = site.client(f"{mode}-ocsp", place)
        site.web.bodies[place], part = responses(site, site.issuers[f"{mode}-ocsp"], client.certificate)[name]
        is_accepted, reason, text = site.log_in(tmp_path, client)
        expected = (True, "no provider") if mode is Revocation.SOFT else (False, UNKNOWN)
        assert (is_accepted, reason) == expected, (name, text)
        assert part in text, name


@MODES
def test_good_and_revoked(site: Site, tmp_path: Path, mode: Revocation) -> None:
    """Good is accepted and revoked is refused in both modes."""
    issuer, now = site.issuers[f"{mode}-ocsp"], site.now
    good, revoked = (site.client(f"{mode}-ocsp", f"/{mode}/{name}") for name in ("good", "revoked"))
    site.web.bodies[f"/{mode}/good"] = issuer.answer(good.certificate, issuer, since=now, until=now + HOUR)
    site.web.bodies[f"/{mode}/revoked"] = issuer.answer(
        revoked.certificate, issuer, ocsp.OCSPCertStatus.REVOKED, since=now, until=now + HOUR
    )
    assert site.log_in(tmp_path, good)[:2] == (True, "no provider")
    assert site.log_in(tmp_path, revoked)[:2] == (False, REVOKED)


@MODES
def test_a_list_with_its_delta_list(site: Site, tmp_path: Path, mode: Revocation) -> None:
    """A certificate on the list, and one on the delta list that it names, are refused in both modes."""
    name, now = f"{mode}-delta", site.now
    issuer = site.issuers[name]
    good, first, second = (site.client(name, f"/{name}.crl", by_list=True) for _ in range(3))
    fresh = x509.FreshestCRL([point(f"{site.web.url}/{name}-2.crl")])
    site.web.bodies[f"/{name}.crl"] = issuer.crl(
        first.certificate.serial_number, number=5, since=now, until=now + DAY, extensions=[(fresh, False)]
    )
    site.web.bodies[f"/{name}-2.crl"] = issuer.crl(
        second.certificate.serial_number, number=6, base=5, since=now, until=now + HOUR
    )
    assert site.log_in(tmp_path, first)[:2] == (False, REVOKED)
    with_delta: list[dict[str, object]] = []
    while not with_delta:
        listed = json.loads(site.service.ok("authority", "lists", name, "--json"))
        with_delta = [each for each in listed if each["delta"]]
    assert site.log_in(tmp_path, second)[:2] == (False, REVOKED)
    assert site.log_in(tmp_path, good)[:2] == (True, "no provider")


@MODES
def test_a_late_list(site: Site, tmp_path: Path, mode: Revocation) -> None:
    """A certificate on a list that has expired is refused in both modes; the state of another one is unknown."""
    name, now = f"{mode}-late", site.now
    issuer = site.issuers[name]
    other, revoked = (site.client(name, f"/{name}.crl", by_list=True) for _ in range(2))
    site.web.bodies[f"/{name}.crl"] = issuer.crl(revoked.certificate.serial_number, since=now - DAY, until=now - HOUR)
    expected = (True, "no provider") if mode is Revocation.SOFT else (False, UNKNOWN)
    is_accepted, reason, text = site.log_in(tmp_path, other)
    assert (is_accepted, reason) == expected
    assert "expired at" in text
    assert site.log_in(tmp_path, revoked)[:2] == (False, REVOKED)


@MODES
def test_a_list_of_20_mib(site: Site, tmp_path: Path, mode: Revocation) -> None:
    """A login that comes before the list is read waits for two seconds at most, and then the mode decides. After that,
    a certificate on the list is refused and another one accepted in both modes."""
    name, now = f"{mode}-large", site.now
    issuer = site.issuers[name]
    good, revoked = (site.client(name, f"/{name}.crl", by_list=True, serial=1 << 120 | each) for each in (1, 2))
    short = issuer.crl(5, since=now, until=now + DAY)
    body = site.web.bodies[f"/{name}.crl"] = with_entries(issuer, short, (1 << 120 | each for each in range(2, MANY)))
    assert len(body) > 20 * 1024 * 1024
    site.log_in(tmp_path, good)
    entries: list[int] = []
    while not any(entries):
        entries = [each["entries"] for each in json.loads(site.service.ok("authority", "lists", name, "--json"))]
    assert entries == [MANY - 2]
    assert site.log_in(tmp_path, revoked)[:2] == (False, REVOKED)
    is_accepted, reason, text = site.log_in(tmp_path, good)
    assert (is_accepted, reason) == (True, "no provider"), text
    assert text.endswith(": good")
