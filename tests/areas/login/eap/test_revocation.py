"""Tests of EAP-TLS with the revocation of an authority's certificates: soft and hard, lists and responders."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from cryptography import x509
from cryptography.x509 import ocsp
from cryptography.x509.oid import AuthorityInformationAccessOID
from OpenSSL import SSL

from sallyport.areas.authorities.authority import Authority, Revocation
from sallyport.areas.domains.repo import Update
from sallyport.areas.login.login import Reason
from sallyport.base.clock import from_us
from sallyport.radius.eap import packet as eap
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.areas.authorities.revocation.issuer import DAY, Issuer
from tests.areas.login.eap.conftest import Nas
from tests.areas.mfa.web import Call, Reply, serving
from tests.radius.eap import certificates
from tests.radius.eap.certificates import Issued
from tests.radius.eap.supplicant import TlsSide, silent

REVOKED, UNKNOWN = Reason.CERTIFICATE_REVOKED.value, Reason.REVOCATION_UNKNOWN.value
IS_REVOKED = ocsp.OCSPCertStatus.REVOKED
MODES = pytest.mark.parametrize("mode", list(Revocation))


class Published:
    """An authority of the domain, and a server with its list and its responder. bodies: the answers by path."""

    def __init__(self, nas: Nas, directory: Path, bodies: dict[str, bytes], calls: list[Call], url: str) -> None:
        self.nas, self.url, self.bodies, self.calls = nas, url, bodies, calls
        self.made = certificates.Authority(directory, "Corp CA")
        certificate = x509.load_pem_x509_certificate(self.made.file.read_bytes())
        self.issuer = Issuer(certificate, self.made._key)
        self.now = from_us(nas.wire.areas.clock.now)
        self.side: TlsSide | None = None

    async def trust(self, mode: Revocation = Revocation.SOFT, **fields: object) -> Authority:
        """Add the authority to the domain. Its clients may have addresses of their own."""
        areas = self.nas.wire.areas
        given = {"domain_ids": (areas.domain,), "revocation": mode, **fields}
        return await areas.authorities.add(areas.tenant, "corp", self.made.file.read_text(), given)

    def issue(self) -> Issued:
        """Return a certificate of ann that names the responder."""
        place = x509.UniformResourceIdentifier(f"{self.url}/ocsp")
        access = x509.AuthorityInformationAccess([x509.AccessDescription(AuthorityInformationAccessOID.OCSP, place)])
        return self.made.certificate("ann", extensions=[access])

    def answer(self, shows: Issued, status: ocsp.OCSPCertStatus = ocsp.OCSPCertStatus.GOOD) -> None:
        """Let the responder answer about a certificate."""
        self.bodies["/ocsp"] = self.issuer.answer(
            shows.certificate, self.issuer, status, since=self.now, until=self.now + DAY
        )

    def publish(self, *serials: int, number: int = 1) -> None:
        """Publish a list."""
        self.bodies["/ca.crl"] = self.issuer.crl(*serials, number=number, since=self.now - DAY, until=self.now + DAY)

    async def log_in(self, shows: Issued, before: TlsSide | None = None) -> tuple[int, str, str]:
        """Log in with a certificate. Return the code of the answer, the reason, and the event's text."""
        self.side = TlsSide(eap.TLS, silent, shows=shows, version=SSL.TLS1_3_VERSION, before=before)
        with trio.fail_after(60):
            ended = await self.nas.log_in(self.side)
        await self.nas.outcomes()
        sql = "select reason, revocation from events order by id desc limit 1"
        ((reason, revocation),) = await self.nas.wire.areas.store.read(lambda tx: tx.rows(sql))
        return ended.code, str(reason), str(revocation)


@pytest.fixture
async def corp(nas: Nas, tmp_path: Path) -> AsyncIterator[Published]:
    """Yield an authority that is not trusted yet. The leader of its lists runs."""
    (tmp_path / "corp").mkdir()
    bodies: dict[str, bytes] = {}
    calls: list[Call] = []

    async def answer(call: Call) -> Reply:
        calls.append(call)
        return Reply(200, bodies[call.path]) if call.path in bodies else Reply(404, b"")

    revocation = nas.wire.areas.app.authorities.revocation
    async with serving(answer) as server, trio.open_nursery() as nursery:
        nursery.start_soon(revocation.lists.follow)
        nursery.start_soon(revocation.fetcher.lead)
        yield Published(nas, tmp_path / "corp", bodies, calls, f"http://127.0.0.1:{server.port}")
        nursery.cancel_scope.cancel()


@MODES
async def test_the_responder_decides(corp: Published, mode: Revocation) -> None:
    """A good certificate is accepted, a revoked one refused, in both modes; the event has the responder's answer. The
    responder is asked once for each certificate."""
    await corp.trust(mode)
    good, revoked = corp.issue(), corp.issue()
    corp.answer(good)
    for _ in range(2):
        code, _, text = await corp.log_in(good)
        assert (code, text) == (ACCESS_ACCEPT, f"OCSP {corp.url}/ocsp of 2026-01-01 00:00: good")
    corp.answer(revoked, IS_REVOKED)
    code, reason, text = await corp.log_in(revoked)
    assert (code, reason) == (ACCESS_REJECT, REVOKED) and "keyCompromise" in text
    assert len(corp.calls) == 2


@MODES
async def test_an_unknown_state_is_decided_by_the_mode(corp: Published, mode: Revocation) -> None:
    """Without an answer, soft accepts and hard refuses; the event has the error."""
    await corp.trust(mode)
    code, reason, text = await corp.log_in(corp.issue())
    assert text == f"OCSP {corp.url}/ocsp: 127.0.0.1: the server answered HTTP 404"
    expected = (ACCESS_REJECT, UNKNOWN) if mode is Revocation.HARD else (ACCESS_ACCEPT, "no provider")
    assert (code, reason) == expected


@MODES
async def test_the_list_decides(corp: Published, mode: Revocation) -> None:
    """A certificate on the list is refused in both modes."""
    good, revoked = corp.made.certificate("ann"), corp.made.certificate("ann")
    corp.publish(revoked.certificate.serial_number)
    added = await corp.trust(mode, crl_addresses=(f"{corp.url}/ca.crl",))
    corp.nas.wire.areas.app.authorities.revocation.lists.tell()
    code, _, text = await corp.log_in(good)
    assert (code, text) == (ACCESS_ACCEPT, f"list {corp.url}/ca.crl of 2025-12-31 00:00: good")
    assert (await corp.log_in(revoked))[:2] == (ACCESS_REJECT, REVOKED)
    assert added.revocation is mode


async def test_a_session_of_a_revoked_certificate_is_not_resumed(corp: Published) -> None:
    """A TLS session ends for the client when its certificate is revoked, although the session could be resumed."""
    await corp.trust()
    shows = corp.issue()
    corp.answer(shows)
    assert (await corp.log_in(shows))[0] == ACCESS_ACCEPT
    before = corp.side
    assert (await corp.log_in(shows, before))[0] == ACCESS_ACCEPT
    corp.answer(shows, IS_REVOKED)
    corp.nas.wire.areas.clock.pass_by(3600)
    corp.answer(shows, IS_REVOKED)
    code, reason, _ = await corp.log_in(shows, before)
    assert (code, reason) == (ACCESS_REJECT, REVOKED)


async def test_a_revoked_certificate_ends_the_sessions_of_its_user(corp: Published) -> None:
    """When the leader finds the certificate on a new list, it stores the revocation of the user, in a domain with
    disconnectOnRevoke."""
    areas = corp.nas.wire.areas
    await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": True}))
    shows = corp.made.certificate("ann")
    corp.publish()
    authority = await corp.trust(crl_addresses=(f"{corp.url}/ca.crl",))
    revocation = areas.app.authorities.revocation
    revocation.lists.tell()
    assert (await corp.log_in(shows))[0] == ACCESS_ACCEPT
    corp.publish(shows.certificate.serial_number, number=2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(revocation.certified.run)
        nursery.start_soon(revocation.certified.lead)
        with trio.fail_after(60):
            areas.clock.pass_by(31)
            await revocation.lists.look_again(authority.id)
            rows: list[tuple[object, ...]] = []
            while not rows:
                await trio.sleep(0.01)
                sql = "select user_name, reason from revocations order by id"
                rows = await areas.store.read(lambda tx: list(tx.rows(sql)))  # noqa: B023
        nursery.cancel_scope.cancel()
    assert rows == [(name, "the client certificate was revoked") for name in ("ann", "host/ann")]
