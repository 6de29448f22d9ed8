"""Logins with the server certificates of domains: the choice by the outer identity, and rotation."""

import gc
from pathlib import Path

import pytest
from cryptography import x509

from sallyport.areas.certificates import repo
from sallyport.base.errors import Conflict
from sallyport.radius.eap.packet import IDENTITY, RESPONSE, Packet, encode
from sallyport.radius.eap.server import TlsServer
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE
from tests.areas import Areas
from tests.areas.login.eap.conftest import Nas
from tests.areas.login.eap.sides import peap
from tests.radius.eap.certificates import Authority, Issued
from tests.radius.eap.supplicant import Supplicant, TlsSide


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Return an authority of the tenant."""
    (tmp_path / "tenant").mkdir()
    return Authority(tmp_path / "tenant", "authority of the tenant")


async def use(areas: Areas, issued: Issued, realm: str = "") -> None:
    """Set a server certificate of the domain."""
    text = issued.file.read_text()
    await areas.app.server_certificates.service.set(areas.domains.table.by_id[areas.domain], realm, text, text)


def shown(side: TlsSide) -> x509.Certificate | None:
    """Return the certificate that the server has shown."""
    return side.connection.get_peer_certificate(as_cryptography=True)


async def test_the_outer_identity_chooses(nas: Nas, authority: Authority) -> None:
    """The realm of the outer identity selects the certificate of the realm, or that of the domain."""
    areas = nas.wire.areas
    name = areas.domains.table.by_id[areas.domain].name
    of_domain, of_realm = authority.certificate("radius.example"), authority.certificate("radius.realm.example")
    seen = []
    for outer in (b"anonymous", f"@{name}".encode()):
        side = peap(b"hello")
        assert (await nas.log_in(side, outer)).code == ACCESS_ACCEPT
        seen.append(shown(side))
    assert seen[0] == seen[1]
    await use(areas, of_domain)
    await use(areas, of_realm, name)
    for outer, wanted in ((b"anonymous", of_domain), (f"@{name.upper()}".encode(), of_realm)):
        side = peap(b"hello")
        assert (await nas.log_in(side, outer)).code == ACCESS_ACCEPT
        assert shown(side) == wanted.certificate


async def test_a_rotation_does_not_disturb_running_conversations(nas: Nas, authority: Authority) -> None:
    """A conversation ends with the certificate with which it began. The next one gets the new certificate."""
    areas = nas.wire.areas
    old, new = authority.certificate("old.example"), authority.certificate("new.example")
    await use(areas, old)
    side, rounds, state = peap(b"hello"), 0, b""
    supplicant = Supplicant(b"anonymous", side)
    response = encode(Packet(RESPONSE, 0, IDENTITY, b"anonymous"))
    while True:
        datagram = nas.request(response, b"anonymous", state)
        nas.wire.put(datagram)
        ended, state = await nas.answer(datagram, rounds)
        if ended.code != ACCESS_CHALLENGE:
            break
        rounds += 1
        await use(areas, new)
        response = supplicant.respond(ended.eap)
    assert (ended.code, shown(side)) == (ACCESS_ACCEPT, old.certificate)
    after = peap(b"hello")
    assert (await nas.log_in(after)).code == ACCESS_ACCEPT
    assert shown(after) == new.certificate


async def test_a_removed_certificate(nas: Nas, authority: Authority) -> None:
    """Without its certificate, the domain uses that of the installation again."""
    areas = nas.wire.areas
    own = authority.certificate("radius.example")
    await use(areas, own)
    await areas.app.server_certificates.service.remove(areas.domain, "")
    side = peap(b"hello")
    assert (await nas.log_in(side)).code == ACCESS_ACCEPT
    assert shown(side) not in {None, own.certificate}


async def test_a_tenant_has_a_limited_number(nas: Nas, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant cannot fill the memory with certificates. Those that it has can still be replaced."""
    areas = nas.wire.areas
    monkeypatch.setattr(repo, "MAX_CERTIFICATES", 1)
    name = areas.domains.table.by_id[areas.domain].name
    await use(areas, authority.certificate("radius.example"))
    await use(areas, authority.certificate("radius.example"))
    with pytest.raises(Conflict, match="at most 1 server certificates"):
        await use(areas, authority.certificate("radius.example"), name)
    assert len(areas.app.server_certificates.service.of(areas.domain)) == 1


async def test_nothing_of_a_replaced_certificate_stays(nas: Nas, authority: Authority) -> None:
    """The servers of replaced and of removed certificates, which have their keys, are not kept in memory."""
    areas = nas.wire.areas
    old = [authority.certificate(f"old{number}.example") for number in range(3)]
    for each in old:
        await use(areas, each)
        assert (await nas.log_in(peap(b"hello"))).code == ACCESS_ACCEPT
    await areas.app.server_certificates.service.remove(areas.domain, "")
    gone = {each.certificate for each in old}
    gc.collect()
    kept = [each for each in gc.get_objects() if isinstance(each, TlsServer)]
    assert not [each for each in kept if each.configuration.certificate.chain[0] in gone]


async def test_only_changed_certificates_are_read(nas: Nas, authority: Authority) -> None:
    """A change of the configuration reads no chain and no key of an unchanged certificate. A certificate that replaces
    another one at the same time is read."""
    areas = nas.wire.areas
    service = areas.app.server_certificates.service
    for name in ("one.example", "two.example"):
        issued = authority.certificate(name)
        await use(areas, issued)
        assert service.of(areas.domain)[0].chain[0] == issued.certificate
    sql = "update server_certificates set chain = 'changed behind the back', private_key = :none"
    await areas.store.write(lambda tx: tx.execute(sql, none=b""))
    before = service.of(areas.domain)
    await areas.configuration.reload()
    assert service.of(areas.domain) == before
