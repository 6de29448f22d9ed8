"""Tests of EAP-TLS with the authorities of a domain: whose certificate it is, and for whom its authority may speak."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio
from cryptography import x509
from OpenSSL import SSL

from sallyport.areas.authorities.authority import Authority, HolderKind
from sallyport.areas.domains.domain import CertificateNames
from sallyport.areas.domains.repo import Update
from sallyport.areas.login.eap.holders import AUTHORITY_CHANGED
from sallyport.areas.login.login import Reason
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.radius.eap.packet import encode
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas import Areas
from tests.areas.authorities.made import MadeAuthority, issued
from tests.areas.login.eap.conftest import Ended, Nas
from tests.areas.login.eap.sides import NO_PROVIDER
from tests.areas.login.eap.test_directory import configure
from tests.areas.login.listen.second import events
from tests.radius.eap import certificates
from tests.radius.eap.certificates import Issued, upn
from tests.radius.eap.supplicant import Supplicant, TlsSide, silent

OUTSIDE = Reason.MAY_NOT_SPEAK.value
REFUSED = Reason.CERTIFICATE_REFUSED.value
VERSIONS = pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION], ids=["TLS 1.2", "TLS 1.3"])


class Signers:
    """Authorities with the same subject name."""

    def __init__(self, nas: Nas, directory: Path) -> None:
        self._nas = nas
        self._directory = directory
        self.made: dict[str, certificates.Authority] = {}

    async def add(self, name: str, **fields: object) -> Authority:
        """Add an authority with a new key to the domain."""
        areas = self._nas.wire.areas
        (self._directory / name).mkdir()
        self.made[name] = made = certificates.Authority(self._directory / name, "Corp Root CA")
        given = {"domain_ids": (areas.domain,), **fields}
        return await areas.authorities.add(areas.tenant, name, made.file.read_text(), given)

    def issue(self, name: str, common_name: str, *alternatives: x509.GeneralName) -> Issued:
        """Return a certificate of an authority."""
        return self.made[name].certificate(common_name, alternatives)


@pytest.fixture
def signers(nas: Nas, tmp_path: Path) -> Signers:
    """Return authorities that have not been added yet."""
    return Signers(nas, tmp_path)


def side(shows: Issued, version: int = SSL.TLS1_3_VERSION, before: TlsSide | None = None) -> TlsSide:
    """Return a supplicant that uses EAP-TLS."""
    return TlsSide(eap.TLS, silent, shows=shows, version=version, before=before)


async def log_in(nas: Nas, shows: Issued, version: int = SSL.TLS1_3_VERSION) -> tuple[int, str, str]:
    """Log in with a certificate. Return the code of the answer, the reason and the user."""
    ended = await nas.log_in(side(shows, version))
    reason, user, _ = (await nas.outcomes())[-1]
    return ended.code, reason, user


@VERSIONS
async def test_the_key_of_the_anchor_says_whose_certificate_it_is(nas: Nas, signers: Signers, version: int) -> None:
    """Three authorities have the same subject name, and one of them is hostile. It gets nobody in outside its scope,
    and does not keep the users of the others out."""
    areas = nas.wire.areas
    await areas.add_user(areas.domain, "guest", b"hello")
    await areas.domains.update(areas.domain, Update(add_realms=("corp.example", "guests.example")))
    await signers.add("people", realms=("corp.example",), kinds=(HolderKind.PEOPLE,))
    await signers.add("hostile", realms=("guests.example",))
    await signers.add("machines", kinds=(HolderKind.MACHINES,))
    ann, guest = upn("ann@corp.example"), upn("guest@guests.example")
    assert await log_in(nas, signers.issue("people", "", ann), version) == (ACCESS_ACCEPT, NO_PROVIDER, "ann")
    assert await log_in(nas, signers.issue("hostile", "", guest), version) == (ACCESS_ACCEPT, NO_PROVIDER, "guest")
    for name, alternative in (("hostile", ann), ("machines", ann), ("people", guest)):
        code, reason, _ = await log_in(nas, signers.issue(name, "", alternative), version)
        assert (code, reason) == (ACCESS_REJECT, OUTSIDE), name
    for common_name in ("ann", "ANN", "ann$"):
        code, reason, _ = await log_in(nas, signers.issue("hostile", common_name), version)
        assert (code, reason) != (ACCESS_ACCEPT, NO_PROVIDER), common_name
    unknown = certificates.Authority(signers._directory / "hostile", "Corp Root CA").certificate("ann")
    assert (await log_in(nas, unknown, version))[:2] == (ACCESS_REJECT, REFUSED)


async def test_the_authority_of_the_installation_is_not_trusted_beside_own_ones(nas: Nas, signers: Signers) -> None:
    """It is the default of domains without authorities. When the last one is removed, it is trusted again."""
    own = nas.authority.certificate("ann")
    assert (await log_in(nas, own))[0] == ACCESS_ACCEPT
    added = await signers.add("mdm")
    assert (await log_in(nas, own))[:2] == (ACCESS_REJECT, REFUSED)
    assert (await log_in(nas, signers.issue("mdm", "ann")))[0] == ACCESS_ACCEPT
    await nas.wire.areas.authorities.delete(nas.wire.areas.tenant, added.id)
    assert (await log_in(nas, signers.issue("mdm", "ann")))[:2] == (ACCESS_REJECT, REFUSED)
    assert (await log_in(nas, own))[0] == ACCESS_ACCEPT


async def resume(nas: Nas, shows: Issued, before: TlsSide, version: int) -> tuple[Ended, TlsSide]:
    """Log in by resuming the session of an earlier login."""
    again = side(shows, version, before)
    return await nas.log_in(again), again


@VERSIONS
async def test_a_change_of_the_authority_ends_resumption(nas: Nas, signers: Signers, version: int) -> None:
    """An unchanged authority lets a session be resumed. After a change, a full handshake follows, and the new scope
    applies. After the removal, nothing is resumed."""
    areas = nas.wire.areas
    added = await signers.add("mdm")
    ann = signers.issue("mdm", "ann")
    first = side(ann, version)
    assert (await nas.log_in(first)).code == ACCESS_ACCEPT
    ended, second = await resume(nas, ann, first, version)
    assert (ended.code, second.is_new) == (ACCESS_ACCEPT, False)
    await areas.authorities.update(areas.tenant, added.id, None, {"name": "MDM"})
    ended, third = await resume(nas, ann, second, version)
    assert (ended.code, third.is_new) == (ACCESS_ACCEPT, True)
    await areas.authorities.update(areas.tenant, added.id, None, {"groups": ("staff",)})
    ended, fourth = await resume(nas, ann, third, version)
    assert (ended.code, fourth.is_new) == (ACCESS_REJECT, True)
    assert (await nas.outcomes())[-1][0] == OUTSIDE
    await areas.authorities.delete(areas.tenant, added.id)
    ended, fifth = await resume(nas, ann, third, version)
    assert (ended.code, fifth.is_new) == (ACCESS_REJECT, True)


async def log_in_with(nas: Nas, side: TlsSide, at: int, act: Callable[[], Awaitable[object]]) -> int:
    """Log in, and call a function before a round. Return the code of the last answer. at: the number of the round."""
    supplicant, state, name = Supplicant(b"anonymous", side), b"", b"anonymous"
    response, rounds = encode(eap.Packet(eap.RESPONSE, 0, eap.IDENTITY, name)), 0
    while True:
        if rounds == at:
            await act()
        datagram = nas.request(response, name, state)
        nas.wire.put(datagram)
        ended, state = await nas.answer(datagram)
        if ended.code != ACCESS_CHALLENGE:
            return ended.code
        rounds += 1
        response = supplicant.respond(ended.eap)


@VERSIONS
async def test_an_authority_that_is_removed_during_a_login_admits_nobody(
    nas: Nas, signers: Signers, version: int
) -> None:
    """Whatever the round, a login that has begun with the previous trust anchors is refused."""
    areas = nas.wire.areas
    for name in ("first", "second"):
        await signers.add(name)
    shown = signers.issue("first", "ann")
    rounds = [(await nas.log_in(side(shown, version))).rounds for _ in range(2)][-1]  # the second offers EAP-TLS first
    for at in range(rounds - 2, rounds + 1):
        added = await signers.add(f"mdm {at}")
        remove = partial(areas.authorities.delete, areas.tenant, added.id)
        code = await log_in_with(nas, side(signers.issue(f"mdm {at}", "ann"), version), at, remove)
        assert code == ACCESS_REJECT, at
        event = (await events(areas))[-1]
        assert (event.reason, event.detail) == (REFUSED, AUTHORITY_CHANGED), at


SID = "S-1-5-21-1-2-3-1104"
TAG = "tag:microsoft.com,2022-09-14:sid:"


def uri(sid: str) -> x509.GeneralName:
    """Return the URI with which Intune writes a SID."""
    return x509.UniformResourceIdentifier(TAG + sid)


async def configure_directory(nas: Nas) -> None:
    """Let a directory check the users of the domain, which has the realm of their principal names."""
    await configure(nas)
    await nas.wire.areas.domains.update(nas.wire.areas.domain, Update(add_realms=("corp.example",)))


async def test_the_sid_finds_the_person(nas: Nas, signers: Signers) -> None:
    """The login is that of the account with this SID, and a SID in another domain of Active Directory is outside."""
    await configure_directory(nas)
    areas = nas.wire.areas
    added = await signers.add("mdm", names=(NamedBy.SID, NamedBy.UPN), sid_prefixes=("S-1-5-21-1-2-3",))
    assert await log_in(nas, signers.issue("mdm", "", uri(SID))) == (ACCESS_ACCEPT, NO_PROVIDER, "ann")
    ended = await nas.log_in(side(signers.issue("mdm", "", uri(SID))))
    assert ended.names == [b"ann"]
    unknown = signers.issue("mdm", "", uri(f"{SID}1"))
    assert (await log_in(nas, unknown))[:2] == (ACCESS_REJECT, Reason.UNKNOWN_USER.value)
    await areas.authorities.update(areas.tenant, added.id, None, {"sid_prefixes": ("S-1-5-21-1-2-30",)})
    assert (await log_in(nas, signers.issue("mdm", "", uri(SID))))[:2] == (ACCESS_REJECT, OUTSIDE)


async def test_a_name_that_contradicts_the_sid_is_refused(nas: Nas, signers: Signers) -> None:
    """If a name was given to another person, the SID in an older certificate still names the first one."""
    await configure_directory(nas)
    await signers.add("mdm", names=(NamedBy.UPN, NamedBy.SID))
    right = signers.issue("mdm", "", upn("ann@corp.example"), uri(SID))
    assert (await log_in(nas, right))[0] == ACCESS_ACCEPT
    wrong = signers.issue("mdm", "", upn("ann@corp.example"), uri("S-1-5-21-1-2-3-999"))
    assert (await log_in(nas, wrong))[:2] == (ACCESS_REJECT, REFUSED)
    several = signers.issue("mdm", "", upn("ann@corp.example"), uri(SID), uri("S-1-5-21-9"))
    assert (await log_in(nas, several))[:2] == (ACCESS_REJECT, REFUSED)


async def test_the_event_says_why_a_certificate_is_refused(nas: Nas, signers: Signers) -> None:
    """The reason is the same, and the detail tells a contradiction, a long name and a missing name apart."""
    await configure_directory(nas)
    await signers.add("mdm", names=(NamedBy.UPN, NamedBy.DNS))
    person, other = upn("ann@corp.example"), "S-1-5-21-1-2-3-999"
    for detail, alternatives in (
        (f"the certificate has the SID {other}, and the account has the SID {SID}", (person, uri(other))),
        ("the certificate has the UPN ann@corp, and the account has the UPN ann@corp.example", (upn("ann@corp"),)),
        ("the certificate cannot be read: the user's name is longer than 253 octets", (x509.DNSName("a" * 254),)),
        ("the certificate has none of the authority's names: upn, dns", (x509.RFC822Name("ann@corp.example"),)),
    ):
        assert (await log_in(nas, signers.issue("mdm", "", *alternatives)))[:2] == (ACCESS_REJECT, REFUSED)
        assert (await events(nas.wire.areas))[-1].detail == detail


async def test_the_account_counts_before_the_certificate(nas: Nas, signers: Signers) -> None:
    """An authority for machines gets no person in, whatever it writes, and the realm is also that of the account."""
    await configure_directory(nas)
    areas = nas.wire.areas
    await signers.add("machines", kinds=(HolderKind.MACHINES,))
    host = signers.issue("machines", "", x509.DNSName("pc1.corp"))
    assert (await log_in(nas, host))[:2] == (ACCESS_ACCEPT, NO_PROVIDER)
    for alternative in (x509.DNSName("ann"), upn("ann@corp.example")):
        assert (await log_in(nas, signers.issue("machines", "", alternative)))[:2] == (ACCESS_REJECT, OUTSIDE)
    await areas.domains.update(areas.domain, Update(add_realms=("guests.example",)))
    await signers.add("guests", realms=("guests.example",))
    assert (await log_in(nas, signers.issue("guests", "ann@guests.example")))[:2] == (ACCESS_REJECT, OUTSIDE)


async def test_a_principal_name_must_be_the_whole_one_of_the_account(nas: Nas, signers: Signers) -> None:
    """The part before the realm may be the login name of another person than the one with this principal name."""
    await configure_directory(nas)
    await signers.add("mdm")
    assert (await log_in(nas, signers.issue("mdm", "", upn("ann@Corp.Example"))))[0] == ACCESS_ACCEPT
    assert (await log_in(nas, signers.issue("mdm", "", upn("ann@corp"))))[:2] == (ACCESS_REJECT, REFUSED)


@pytest.mark.parametrize("user", ["ann.lee", "pc1.corp", "pc1"])
async def test_a_host_name_tells_no_person_from_a_machine(nas: Nas, signers: Signers, user: str) -> None:
    """Without a directory, an endpoint user is a machine if its own name says so. An authority for one kind alone names
    nobody else by a host name."""
    areas = nas.wire.areas
    for name in (user, "host/pc2.corp"):
        await areas.add_user(areas.domain, name, b"hello")
    await signers.add("machines", kinds=(HolderKind.MACHINES,))
    await signers.add("people", kinds=(HolderKind.PEOPLE,))
    await signers.add("both")
    for name, code in (("machines", ACCESS_REJECT), ("people", ACCESS_REJECT), ("both", ACCESS_ACCEPT)):
        assert (await log_in(nas, signers.issue(name, "", x509.DNSName(user))))[0] == code, name
    assert (await log_in(nas, signers.issue("machines", "host/pc2.corp")))[0] == ACCESS_ACCEPT
    assert (await log_in(nas, signers.issue("people", "host/pc2.corp")))[:2] == (ACCESS_REJECT, OUTSIDE)


async def test_a_renewed_certificate_of_an_anchor_counts_as_the_anchor(nas: Nas, tmp_path: Path) -> None:
    """The client sends another certificate of the key of an issuing authority, which leads to a root of another
    authority. The scope of the issuing authority counts."""
    areas = nas.wire.areas
    root = MadeAuthority("Root")
    issuing = MadeAuthority("Issuing", root)
    renewed = MadeAuthority("Issuing", root, key=issuing.key, key_id=b"renewed")
    client = issued(renewed, tmp_path / "client.pem", "ann", renewed.pem, key_id=b"renewed")
    given = {"domain_ids": (areas.domain,)}
    await areas.authorities.add(areas.tenant, "root", root.pem, given)
    assert (await log_in(nas, client))[0] == ACCESS_ACCEPT
    await areas.authorities.add(areas.tenant, "issuing", issuing.pem, {**given, "groups": ("staff",)})
    assert (await log_in(nas, client))[:2] == (ACCESS_REJECT, OUTSIDE)


async def test_a_handshake_with_a_long_chain_is_refused(nas: Nas, tmp_path: Path) -> None:
    """The chain is valid, but too long to be verified on the event loop."""
    areas = nas.wire.areas
    root = MadeAuthority("Root")
    await areas.authorities.add(areas.tenant, "root", root.pem, {"domain_ids": (areas.domain,)})
    long = issued(root, tmp_path / "long.pem", "ann", MadeAuthority("Other", root).pem * 40)
    short = issued(root, tmp_path / "short.pem", "ann", MadeAuthority("Other", root).pem * 4)
    assert (await log_in(nas, short))[0] == ACCESS_ACCEPT
    assert (await log_in(nas, long))[:2] == (ACCESS_REJECT, REFUSED)


async def test_the_limits_are_those_of_each_certificate_of_the_chain(nas: Nas, tmp_path: Path) -> None:
    """An intermediate certificate has more name constraints than a client's chain may have."""
    areas = nas.wire.areas
    root = MadeAuthority("Root")
    await areas.authorities.add(areas.tenant, "root", root.pem, {"domain_ids": (areas.domain,)})
    for count, code in ((100, ACCESS_ACCEPT), (101, ACCESS_REJECT)):
        constraints = x509.NameConstraints([x509.DNSName("corp")] * count, None)
        issuing = MadeAuthority("Issuing", root, extensions=[constraints])
        shown = issued(issuing, tmp_path / f"{count}.pem", "ann", issuing.pem)
        assert (await log_in(nas, shown))[0] == code, count


async def test_only_strong_names(nas: Nas, signers: Signers) -> None:
    """A certificate without a strong name is refused with its own reason."""
    await signers.add("mdm", names=(NamedBy.SID, NamedBy.UPN), strong_only=True)
    refused = await log_in(nas, signers.issue("mdm", "ann", upn("ann@corp.example")))
    assert refused[:2] == (ACCESS_REJECT, Reason.NO_STRONG_NAME.value)


async def test_a_domain_demands_strong_names(nas: Nas, signers: Signers) -> None:
    """The demand is for all authorities of the domain, and for those of the installation, which give weak names."""
    areas = nas.wire.areas
    await areas.domains.update(areas.domain, Update(settings={"certificate_names": CertificateNames.STRONG}))
    no_strong_name = (ACCESS_REJECT, Reason.NO_STRONG_NAME.value)
    assert (await log_in(nas, nas.authority.certificate("ann")))[:2] == no_strong_name
    await configure_directory(nas)
    await signers.add("mdm", names=(NamedBy.UPN, NamedBy.SID))
    assert (await log_in(nas, signers.issue("mdm", "", upn("ann@corp.example"))))[:2] == no_strong_name
    assert (await log_in(nas, signers.issue("mdm", "", upn("ann@corp.example"), uri(SID))))[0] == ACCESS_ACCEPT


async def test_another_node_follows_a_change(nas: Nas, signers: Signers) -> None:
    """A node that has resumable sessions learns of a removal on another node."""
    areas = nas.wire.areas
    added = await signers.add("mdm")
    ann = signers.issue("mdm", "ann")
    first = side(ann)
    assert (await nas.log_in(first)).code == ACCESS_ACCEPT
    other = Areas(areas.store, areas.clock)
    await other.configuration.reload()
    nas.wire.nursery.start_soon(areas.configuration.watch)
    await other.authorities.delete(areas.tenant, added.id)
    with trio.fail_after(20):
        while areas.authorities.of_domain(areas.domain):
            await trio.sleep(0.01)
    ended, second = await resume(nas, ann, first, SSL.TLS1_3_VERSION)
    assert (ended.code, second.is_new) == (ACCESS_REJECT, True)


async def test_an_issuing_authority_alone_and_below_a_root(nas: Nas, tmp_path: Path) -> None:
    """The nearest anchor of the verified chain decides: that of the issuing authority, or else its root."""
    areas = nas.wire.areas
    root = MadeAuthority("Root")
    issuing = MadeAuthority("Issuing", root)
    client = issued(issuing, tmp_path / "client.pem", "ann")
    whole = issued(issuing, tmp_path / "whole.pem", "ann", issuing.pem)
    given = {"domain_ids": (areas.domain,)}
    added = await areas.authorities.add(areas.tenant, "issuing", issuing.pem, given)
    assert (await log_in(nas, client))[0] == ACCESS_ACCEPT
    await areas.authorities.add(areas.tenant, "root", root.pem, {**given, "groups": ("staff",)})
    assert (await log_in(nas, client))[0] == ACCESS_ACCEPT
    await areas.authorities.delete(areas.tenant, added.id)
    assert (await log_in(nas, client))[:2] == (ACCESS_REJECT, REFUSED)
    assert (await log_in(nas, whole))[:2] == (ACCESS_REJECT, OUTSIDE)


async def test_the_constraints_of_a_root_above_intermediates_count(nas: Nas, tmp_path: Path) -> None:
    """A bundle with a root and its intermediate certificate admits only what the root permits. The intermediate alone
    is a trust anchor, whatever its root says."""
    areas = nas.wire.areas
    permitted = x509.NameConstraints([x509.DNSName("corp.example")], None)
    root = MadeAuthority("Root", extensions=[permitted])
    issuing = MadeAuthority("Issuing", root)
    await areas.add_user(areas.domain, "pc.corp.example", b"hello")
    await areas.add_user(areas.domain, "pc.other.example", b"hello")
    shown = {
        name: issued(issuing, tmp_path / f"{name}.pem", name, names=(x509.DNSName(name),))
        for name in ("pc.corp.example", "pc.other.example")
    }
    given = {"domain_ids": (areas.domain,)}
    added = await areas.authorities.add(areas.tenant, "bundle", issuing.pem + root.pem, given)
    assert (await log_in(nas, shown["pc.corp.example"]))[0] == ACCESS_ACCEPT
    assert (await log_in(nas, shown["pc.other.example"]))[:2] == (ACCESS_REJECT, REFUSED)
    assert "name constraints" in ((await events(areas))[-1].detail or "")
    await areas.authorities.update(areas.tenant, added.id, issuing.pem, {})
    assert (await log_in(nas, shown["pc.other.example"]))[0] == ACCESS_ACCEPT


async def test_an_authority_of_another_domain_or_tenant_is_not_trusted(nas: Nas, signers: Signers) -> None:
    """A domain trusts its own authorities alone, and no session of one domain is resumed in another."""
    areas = nas.wire.areas
    branch = await areas.domains.add(areas.tenant, "branch")
    await areas.add_user(branch, "ann", b"hello")
    await signers.add("of corp")
    await signers.add("of branch", domain_ids=(branch,))
    other = await areas.tenancy.ensure_tenant(1, 2)
    foreign = await areas.domains.add(other, "corp")
    (signers._directory / "foreign").mkdir()
    hostile = certificates.Authority(signers._directory / "foreign", "Corp Root CA")
    await areas.authorities.add(other, "of corp", hostile.file.read_text(), {"domain_ids": (foreign,)})
    assert (await log_in(nas, signers.issue("of corp", "ann")))[0] == ACCESS_ACCEPT
    for shown in (signers.issue("of branch", "ann"), hostile.certificate("ann")):
        assert (await log_in(nas, shown))[:2] == (ACCESS_REJECT, REFUSED)
    first = side(signers.issue("of branch", "ann"))
    assert (await nas.log_in(first, b"@branch")).code == ACCESS_ACCEPT
    ended, second = await resume(nas, signers.issue("of branch", "ann"), first, SSL.TLS1_3_VERSION)
    assert (ended.code, second.is_new) == (ACCESS_REJECT, True)


async def test_what_the_installation_has_revoked_stays_revoked(nas: Nas, signers: Signers) -> None:
    """The installation's own authority can be one of a domain. Its revocation list still applies."""
    areas = nas.wire.areas
    ann, bob = nas.authority.certificate("ann"), nas.authority.certificate("ann")
    revoked = nas.authority.revocations(bob.certificate)
    credentials = areas.credentials
    assert credentials is not None
    areas.credentials = replace(credentials, crl_file=revoked, stamp=(1,))
    pem = nas.authority.file.read_text()
    await areas.authorities.add(areas.tenant, "own", pem, {"domain_ids": (areas.domain,)})
    assert (await log_in(nas, ann))[0] == ACCESS_ACCEPT
    assert (await log_in(nas, bob))[:2] == (ACCESS_REJECT, REFUSED)
    assert "a revocation list of the installation" in ((await events(areas))[-1].detail or "")
