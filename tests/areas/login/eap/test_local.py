"""Tests of EAP in a domain with local passwords: verdicts, events and counters."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio
from cryptography import x509

from sallyport.areas.clients.issued import IssuedCertificates
from sallyport.areas.domains.domain import Mode
from sallyport.areas.login.login import Reason
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.certs.authority import fingerprint
from sallyport.certs.credentials import Credentials
from sallyport.radius.attributes import FRAMED_MTU, PROXY_STATE, push_attribute
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.packet import IDENTITY, RESPONSE, Packet, encode
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas.login.eap.conftest import Nas
from tests.areas.login.eap.sides import ANN, NO_PROVIDER, SIDES, new_password, peap, ttls
from tests.areas.login.listen.second import SESSION
from tests.packets import pap
from tests.radius.eap.certificates import upn
from tests.radius.eap.supplicant import (
    GtcSide,
    Md5Side,
    MsChapSide,
    Supplicant,
    TlsSide,
    in_peap,
    in_ttls_pap,
    silent,
)
from tests.radius.eap.test_methods import msk


@pytest.mark.parametrize("method", SIDES)
async def test_a_right_password(nas: Nas, method: str) -> None:
    """The Accept contains the keys of the tunnel. The only event names the inner user, not `anonymous`."""
    side = SIDES[method](b"hello")
    ended = await nas.log_in(side)
    assert (ended.code, ended.eap[0], ended.names) == (ACCESS_ACCEPT, eap.SUCCESS, [ANN])
    assert ended.keys == msk(side)
    assert await nas.outcomes() == [(NO_PROVIDER, "ann", method)]


async def test_a_login_in_memory_needs_no_task(nas: Nas) -> None:
    """If the user is in memory, no round, no password check and no decision starts a task."""
    areas = nas.wire.areas
    await areas.users.load(areas.domain, "ann")
    supplicant, state = Supplicant(ANN, peap(b"hello")), b""
    response = encode(Packet(RESPONSE, 0, IDENTITY, ANN))
    code = ACCESS_CHALLENGE
    while code == ACCESS_CHALLENGE:
        areas.clock.pass_by(0.1)
        datagram = nas.request(response, ANN, state)
        nas.wire.put(datagram)
        assert not [task.name for task in nas.wire.nursery.child_tasks if "decide" in task.name]
        ended, state = await nas.answer(datagram)
        code = ended.code
        response = supplicant.respond(ended.eap) if code == ACCESS_CHALLENGE else b""
    assert code == ACCESS_ACCEPT


@pytest.mark.parametrize(
    ("mtu", "most"), [(None, 1020), (b"\0\0\2\x58", 600), (b"\0\0\5\x78", 1300), (b"\xff" * 4, 1300), (bytes(4), 64)]
)
async def test_a_nas_says_how_much_it_carries(nas: Nas, mtu: bytes | None, most: int) -> None:
    """No packet is longer than Framed-MTU, or the default if there is none.

    The first fragment has exactly that length.
    """
    server = nas.authority.certificate("radius.example.com", padding=1500)
    nas.wire.areas.credentials = Credentials(server.file, server.file, nas.authority.file)
    body = SESSION if mtu is None else SESSION + push_attribute(FRAMED_MTU, mtu)
    supplicant, state = Supplicant(ANN, peap(b"hello")), b""
    response = encode(Packet(RESPONSE, 0, IDENTITY, ANN))
    lengths, code = [], ACCESS_CHALLENGE
    while code == ACCESS_CHALLENGE:
        datagram = nas.request(response, ANN, state, body)
        nas.wire.put(datagram)
        ended, state = await nas.answer(datagram)
        lengths.append(len(ended.eap))
        code = ended.code
        response = supplicant.respond(ended.eap) if code == ACCESS_CHALLENGE else b""
    assert (code, max(lengths)) == (ACCESS_ACCEPT, most)


class Spawned(trio.abc.Instrument):
    """The names of the tasks that have started."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        """Add the name of a new task."""
        self.names.append(task.name)


async def test_many_at_once(nas: Nas) -> None:
    """If many conversations begin in one wake-up, all of them are answered. The postponed rounds need no tasks of their
    own."""
    areas = nas.wire.areas
    first, *datagrams = [nas.request(encode(Packet(RESPONSE, 0, IDENTITY, ANN)), ANN) for _ in range(61)]
    nas.wire.put(first)  # its conversation waits until the TLS server is made
    await nas.wire.take()
    spawned = Spawned()
    trio.lowlevel.add_instrument(spawned)
    nas.wire.put(*datagrams)
    answers = [await nas.wire.take() for _ in datagrams]
    trio.lowlevel.remove_instrument(spawned)
    assert not [name for name in spawned.names if name.endswith("_decide_later")]
    assert sorted(reply[1] for reply, _ in answers) == sorted(datagram[1] for datagram in datagrams)
    assert {reply[0] for reply, _ in answers} == {ACCESS_CHALLENGE}
    assert areas.sample("sallyport_radius_rounds_total", listener="auth") == 61


@pytest.mark.parametrize("method", SIDES)
async def test_a_wrong_password(nas: Nas, method: str) -> None:
    """A wrong password ends with the error of its EAP method and causes one event, however many rounds follow."""
    ended = await nas.log_in(SIDES[method](b"wrong"))
    assert (ended.code, ended.eap[0], ended.keys, ended.names) == (ACCESS_REJECT, eap.FAILURE, b"", [])
    assert await nas.outcomes() == [("wrong password", "ann", method)]


async def test_methods_without_a_tunnel(nas: Nas) -> None:
    """MD5 and MS-CHAPv2 need no server certificate."""
    nas.wire.areas.credentials = None
    for side in (Md5Side(b"hello"), MsChapSide(ANN, b"hello")):
        assert (await nas.log_in(side, ANN)).code == ACCESS_ACCEPT
    assert [method for *_, method in await nas.outcomes()] == ["eap-md5", "eap-mschapv2"]


async def test_a_certificate_logs_in_its_user(nas: Nas) -> None:
    """A client certificate logs in the user whose name it contains. If there is no such user, it is rejected."""
    for name, code in (("ann", ACCESS_ACCEPT), ("nobody", ACCESS_REJECT)):
        ended = await nas.log_in(TlsSide(eap.TLS, silent, shows=nas.authority.certificate(name)))
        assert ended.code == code
    assert await nas.outcomes() == [(NO_PROVIDER, "ann", "eap-tls"), ("unknown user", "nobody", "eap-tls")]


async def test_rules_compare_the_certificate_and_the_method(nas: Nas) -> None:
    """The facts are those of the verified certificate, in a resumed session too. A login by password has none."""
    areas = nas.wire.areas
    allow = {"name": "r", "action": "allow", "methods": ["eap-tls"], "certificates": ["san=pc1.example"]}
    await areas.rules.add(areas.domain, RuleFields.model_validate(allow))
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, None)
    shown = nas.authority.certificate("", [upn("ann"), x509.DNSName("pc1.example")])
    first = TlsSide(eap.TLS, silent, shows=shown)
    assert (await nas.log_in(first)).code == ACCESS_ACCEPT
    assert (await nas.log_in(TlsSide(eap.TLS, silent, shows=shown, before=first))).code == ACCESS_ACCEPT
    assert (await nas.log_in(TlsSide(eap.TLS, silent, shows=nas.authority.certificate("ann")))).code == ACCESS_REJECT
    assert (await nas.log_in(peap(b"hello"))).code == ACCESS_REJECT
    block = {"name": "r", "action": "block", "methods": ["peap-mschapv2"]}
    await areas.rules.add(areas.domain, RuleFields.model_validate(block))
    assert (await nas.log_in(peap(b"hello"))).code == ACCESS_REJECT
    reasons = [reason for reason, *_ in await nas.outcomes()]
    assert reasons == ["", "", NO_PROVIDER, NO_PROVIDER, "blocked by rule"]


async def test_a_resumed_session_has_the_method_of_its_full_login(nas: Nas) -> None:
    """The event says that the session was resumed, and keeps the method for the preview."""
    areas = nas.wire.areas
    allow = {"name": "r", "action": "allow", "methods": ["peap-mschapv2"]}
    await areas.rules.add(areas.domain, RuleFields.model_validate(allow))
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, None)
    first = peap(b"hello")
    assert (await nas.log_in(first)).code == ACCESS_ACCEPT
    again = TlsSide(eap.PEAP, in_peap(ANN, MsChapSide(ANN, b"hello")), before=first)
    assert (await nas.log_in(again)).code == ACCESS_ACCEPT
    assert [method for *_, method in await nas.outcomes()] == ["eap-peap-mschapv2", "eap-peap-resumed"]
    rows = await areas.store.read(lambda tx: tx.rows("select facts from events order by id"))
    assert [facts for (facts,) in rows] == [None, '{"method": "peap-mschapv2"}']


@pytest.mark.parametrize("adds_authority", [False, True], ids=["installation", "own authority"])
async def test_a_certificate_of_another_tenant(nas: Nas, adds_authority: bool) -> None:
    """A certificate of another tenant is refused, even in a resumed session, and even if the domain trusts the
    authority of the installation as one of its own.

    A certificate of this tenant is accepted. Both contain the name of a user of the domain.
    """
    areas = nas.wire.areas
    if adds_authority:
        pem = nas.authority.file.read_text()
        await areas.authorities.add(areas.tenant, "own", pem, {"domain_ids": (areas.domain,)})
    issued = IssuedCertificates(areas.configuration, lambda: areas.clients.table.issued)
    other = await areas.tenancy.ensure_tenant(2, 1)
    foreign, own = (nas.authority.certificate("ann") for _ in range(2))
    first = TlsSide(eap.TLS, silent, shows=foreign)
    assert (await nas.log_in(first)).code == ACCESS_ACCEPT
    await issued.record("ann", fingerprint(foreign.certificate), other)
    again = TlsSide(eap.TLS, silent, shows=foreign, before=first)
    for side in (again, TlsSide(eap.TLS, silent, shows=foreign)):
        assert (await nas.log_in(side)).code == ACCESS_REJECT
    await issued.record("own", fingerprint(own.certificate), areas.tenant)
    assert (await nas.log_in(TlsSide(eap.TLS, silent, shows=own))).code == ACCESS_ACCEPT
    reasons = [reason for reason, *_ in await nas.outcomes()]
    assert reasons == [NO_PROVIDER, Reason.CERTIFICATE_REFUSED, Reason.CERTIFICATE_REFUSED, NO_PROVIDER]


async def test_no_authority(nas: Nas) -> None:
    """Without an authority for client certificates, passwords in a tunnel still work, and EAP-TLS is not offered."""
    areas = nas.wire.areas
    assert areas.credentials is not None
    areas.credentials = replace(areas.credentials, ca_file=None)
    assert (await nas.log_in(peap(b"hello"))).code == ACCESS_ACCEPT
    side = TlsSide(eap.TLS, silent, shows=nas.authority.certificate("ann"))
    assert (await nas.log_in(side)).code == ACCESS_REJECT
    assert [reason for reason, *_ in await nas.outcomes()] == [NO_PROVIDER, Reason.METHOD_NOT_OFFERED]


async def test_a_certificate_is_of_one_domain(nas: Nas) -> None:
    """If there are several domains, the name in a certificate needs a realm, because all domains trust the same
    authority."""
    areas = nas.wire.areas
    branch = await areas.domains.add(areas.tenant, "branch")
    await areas.add_user(branch, "ann", b"hello")
    reasons = []
    for name, outer in (("ann", b"x"), ("ann@corp", b"x"), ("ann@corp", b"x@branch"), ("ann@branch", b"x@branch")):
        issued = nas.authority.certificate(name)
        reasons.append((await nas.log_in(TlsSide(eap.TLS, silent, shows=issued), outer)).code)
    assert reasons == [ACCESS_REJECT, ACCESS_ACCEPT, ACCESS_REJECT, ACCESS_ACCEPT]


async def test_a_host_is_of_the_domain_that_its_name_ends_in(nas: Nas) -> None:
    """A host's certificate belongs to the domain that the suffix of its name selects.

    A common name with such a suffix does not count.
    """
    areas = nas.wire.areas
    branch = await areas.domains.add(areas.tenant, "branch", realms=["branch.example"])
    for domain in (areas.domain, branch):
        await areas.add_user(domain, "pc1.branch.example", b"hello")
    codes = []
    for names, outer in (
        ([x509.DNSName("pc1.branch.example")], b"x"),
        ([x509.DNSName("pc1.branch.example")], b"x@branch"),
        ([], b"x@branch"),
    ):
        issued = nas.authority.certificate("" if names else "pc1.branch.example", names)
        codes.append((await nas.log_in(TlsSide(eap.TLS, silent, shows=issued), outer)).code)
    assert codes == [ACCESS_REJECT, ACCESS_ACCEPT, ACCESS_REJECT]


async def test_the_user_name_of_an_accept_is_unambiguous(nas: Nas) -> None:
    """If the user is not in the device's default domain, the User-Name in the Accept contains a realm.

    The device uses it in accounting. An inner realm stays unchanged.
    """
    areas = nas.wire.areas
    branch = await areas.domains.add(areas.tenant, "branch", realms=["branch.example"])
    await areas.add_user(branch, "ann", b"hello")
    outcomes = []
    for inner, outer in (
        (ANN, b"anonymous@corp"),
        (ANN, b"anonymous@branch.example"),
        (ANN, b"BRANCH\\anonymous"),
        (b"ann@branch", b"anonymous@branch.example"),
        (b"branch\\ann", b"branch\\ann"),
    ):
        side = TlsSide(eap.PEAP, in_peap(inner, MsChapSide(inner, b"hello")))
        outcomes += (await nas.log_in(side, outer)).names
    assert outcomes == [ANN, b"ann@branch.example", b"ann@BRANCH", b"ann@branch", b"branch\\ann"]


async def test_a_session_is_of_one_domain(nas: Nas) -> None:
    """A session of ann in corp is not resumed for ann in branch."""
    areas = nas.wire.areas
    await areas.add_user(await areas.domains.add(areas.tenant, "branch"), "ann", b"another")
    before = peap(b"hello")
    assert (await nas.log_in(before)).code == ACCESS_ACCEPT
    side = TlsSide(eap.PEAP, in_peap(ANN, MsChapSide(ANN, b"hello")), before=before)
    assert (await nas.log_in(side, b"anonymous@branch")).code == ACCESS_REJECT


async def test_why_eap_fails(nas: Nas) -> None:
    """Events distinguish the causes that an admin has to fix."""
    areas = nas.wire.areas
    good = areas.credentials
    assert good is not None
    await nas.log_in(TlsSide(eap.TLS, silent))
    await nas.log_in(GtcSide(b"hello"))
    areas.credentials = None
    await nas.log_in(peap(b"hello"))
    areas.credentials = replace(good, certificate_file=Path("/nowhere"), stamp=(1,))
    await nas.log_in(peap(b"hello"))
    assert [reason for reason, *_ in await nas.outcomes()] == [
        Reason.TLS_FAILED, Reason.METHOD_NOT_OFFERED, Reason.NO_SERVER_CERTIFICATE, Reason.NO_SERVER_CERTIFICATE,
    ]  # fmt: skip


async def test_a_renewed_certificate_holds_at_once(nas: Nas) -> None:
    """The next conversation uses a renewed certificate.

    If the new certificate cannot be read, the old one stays in use.
    """
    areas = nas.wire.areas
    assert areas.credentials is not None
    renewed = nas.authority.certificate("renewed.example.com")
    areas.credentials = replace(areas.credentials, certificate_file=renewed.file, key_file=renewed.file, stamp=(1,))
    for _ in range(2):
        side = peap(b"hello")
        assert (await nas.log_in(side)).code == ACCESS_ACCEPT
        shown = side.connection.get_peer_certificate(as_cryptography=True)
        assert shown == renewed.certificate
        areas.credentials = replace(areas.credentials, certificate_file=Path("/nowhere"), stamp=(2,))


@pytest.mark.parametrize(
    ("name", "reason"),
    [(b"ann@corp", NO_PROVIDER), (b"CORP\\ann", NO_PROVIDER), (b"ann@branch", Reason.UNKNOWN_REALM.value)],
)
async def test_realms_inside(nas: Nas, name: bytes, reason: str) -> None:
    """A realm inside the tunnel is separated from the name.

    The realm of another domain is rejected, and so is an unknown realm.
    """
    areas = nas.wire.areas
    await areas.add_user(await areas.domains.add(areas.tenant, "branch"), "ann", b"hello")
    await nas.log_in(ttls(in_ttls_pap(name, b"hello")))
    assert [each for each, *_ in await nas.outcomes()] == [reason]


async def test_failures_lock(nas: Nas) -> None:
    """Each wrong password counts for the inner name, even if the client never ends the conversation.

    When the limit is reached, not even the right password is checked.
    """
    for _ in range(3):
        await told_wrong(nas)
    inner = MsChapSide(ANN, b"hello")
    ended = await nas.log_in(TlsSide(eap.PEAP, in_peap(ANN, inner)))
    assert (ended.code, inner.has_proof) == (ACCESS_REJECT, False)
    reasons = [reason for reason, *_ in await nas.outcomes()]
    assert reasons == ["wrong password"] * 3 + ["locked out after failures"]


async def told_wrong(nas: Nas) -> None:
    """Send a wrong password until MS-CHAPv2 reports the error, then stop."""
    side = MsChapSide(ANN, b"wrong")
    response, state = encode(Packet(RESPONSE, 0, IDENTITY, ANN)), b""
    while not side.errors:
        datagram = nas.request(response, ANN, state)
        nas.wire.put(datagram)
        ended, state = await nas.answer(datagram)
        assert ended.code == ACCESS_CHALLENGE
        request = eap.decode(ended.eap)
        kind = side.kind if request.kind == side.kind else eap.NAK
        data = side.respond(request) if kind == side.kind else bytes((side.kind,))
        response = encode(Packet(RESPONSE, request.identifier, kind, data))


async def test_rules_and_their_attributes(nas: Nas) -> None:
    """Rules are applied to the inner user.

    The attributes of a rule are added to the keys in the Accept. A blocked user gets EAP-Failure.
    """
    areas = nas.wire.areas
    await areas.add_user(areas.domain, "bob", b"hello")
    fields = {"name": "a", "action": "allow", "users": ["ann"], "vlan": "7"}
    await areas.rules.add(areas.domain, RuleFields.model_validate(fields))
    await areas.rules.add(areas.domain, RuleFields.model_validate({"name": "b", "action": "block", "users": ["bob"]}))
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    side = peap(b"hello")
    ended = await nas.log_in(side)
    assert (ended.code, ended.keys, ended.vlan) == (ACCESS_ACCEPT, msk(side), b"7")
    ended = await nas.log_in(peap(b"hello", b"bob"))
    assert (ended.code, ended.eap[0], ended.keys, ended.vlan) == (ACCESS_REJECT, eap.FAILURE, b"", b"")
    assert [reason for reason, *_ in await nas.outcomes()] == ["", "blocked by rule"]


async def test_a_login_that_was_passed_on(nas: Nas) -> None:
    """An Accept to a request from a proxy does not contain the inner user name."""
    ended = await nas.log_in(peap(b"hello"), body=SESSION + push_attribute(PROXY_STATE, b"hop"))
    assert (ended.code, ended.names) == (ACCESS_ACCEPT, [])


async def test_an_unknown_state(nas: Nas) -> None:
    """After a restart a State is unknown. It gets EAP-Failure, and the client starts again."""
    datagram = nas.request(encode(Packet(RESPONSE, 3, IDENTITY, ANN)), ANN, bytes(16))
    nas.wire.put(datagram)
    ended, _ = await nas.answer(datagram)
    assert (ended.code, ended.eap) == (ACCESS_REJECT, bytes((eap.FAILURE, 3, 0, 4)))
    assert [reason for reason, *_ in await nas.outcomes()] == [Reason.CHALLENGE_OVER]


async def test_a_start_without_an_identity(nas: Nas) -> None:
    """An empty EAP-Message is answered by EAP-Request/Identity (RFC 3579 section 2.1)."""
    datagram = nas.request(b"", ANN, body=SESSION + bytes((79, 2)))
    nas.wire.put(datagram)
    ended, state = await nas.answer(datagram)
    assert (ended.code, eap.decode(ended.eap).kind, len(state)) == (ACCESS_CHALLENGE, IDENTITY, 16)


async def test_a_conversation_is_not_begun_anew(nas: Nas) -> None:
    """If a new EAP conversation starts with the State of another conversation, it gets no answer, both during and after
    that conversation. Otherwise the second factor of one user would count for the next one."""
    supplicant, state = Supplicant(ANN, peap(b"hello")), b""
    response = encode(Packet(RESPONSE, 0, IDENTITY, ANN))
    code, starts = ACCESS_CHALLENGE, 0
    while code == ACCESS_CHALLENGE:
        datagram = nas.request(response, ANN, state)
        nas.wire.put(datagram)
        ended, given = await nas.answer(datagram)
        code, state = ended.code, given or state
        nas.wire.put(nas.request(b"", ANN, state, SESSION + bytes((79, 2))))
        await nas.wire.silence()
        starts += 1
        response = supplicant.respond(ended.eap) if code == ACCESS_CHALLENGE else b""
    assert code == ACCESS_ACCEPT
    assert nas.wire.dropped("malformed") == starts
    nas.wire.put(nas.request(b"", ANN, b"", SESSION + bytes((79, 2))))
    assert len(await nas.wire.take()) == 2


@pytest.mark.parametrize("kind", [eap.PEAP, eap.TTLS])
async def test_a_changed_password_ends_sessions(nas: Nas, kind: int) -> None:
    """After a change of the password an older session is not resumed: the same conversation asks for the password.

    A login with the new password creates a session that can be resumed.
    """

    def side(password: bytes, before: TlsSide | None = None) -> TlsSide:
        inside = in_peap(ANN, MsChapSide(ANN, password)) if kind == eap.PEAP else in_ttls_pap(ANN, password)
        return TlsSide(kind, inside, begins=kind == eap.TTLS, before=before)

    before = side(b"hello")
    assert (await nas.log_in(before)).code == ACCESS_ACCEPT
    assert (await nas.log_in(side(b"not asked for", before))).code == ACCESS_ACCEPT
    await new_password(nas.wire.areas)
    assert (await nas.log_in(side(b"hello", before))).code == ACCESS_REJECT
    after = side(b"another", before)
    assert (await nas.log_in(after)).code == ACCESS_ACCEPT
    last = side(b"another", after)
    assert (await nas.log_in(last)).code == ACCESS_ACCEPT
    assert (await nas.log_in(side(b"not asked for", last))).code == ACCESS_ACCEPT
    inner = "mschapv2" if kind == eap.PEAP else "pap"
    assert [(reason, method.rpartition("-")[2]) for reason, _, method in await nas.outcomes()] == [
        (NO_PROVIDER, inner),
        (NO_PROVIDER, "resumed"),
        (Reason.WRONG_PASSWORD, inner),
        (NO_PROVIDER, inner),
        (NO_PROVIDER, inner),
        (NO_PROVIDER, "resumed"),
    ]


async def test_a_computer_is_known_in_the_preview(nas: Nas) -> None:
    """The event of a host's certificate records a computer, so that the preview decides it like the login."""
    areas = nas.wire.areas
    await areas.add_user(areas.domain, "pc1", b"hello")
    rule = {"name": "computers", "action": "block", "kinds": ["machine"]}
    await areas.rules.add(areas.domain, RuleFields.model_validate(rule))
    await nas.log_in(TlsSide(eap.TLS, silent, shows=nas.authority.certificate("pc1")), b"host/pc1")
    impact = await areas.preview.impact(areas.domain)
    assert [(each.outcome.value, each.reason) for each in impact.users] == [("reject", "blocked by rule")]


@pytest.mark.parametrize(
    ("names", "user", "outer", "vlan"),
    [
        ([upn("ann")], "ann", b"host/ann", b"20"),
        ([x509.RFC822Name("ann@corp")], "ann", b"host/ann", b"20"),
        ([x509.DNSName("pc1.corp")], "pc1.corp", b"anonymous", b"30"),
        ([], "pc1", b"host/pc1", b"30"),
        ([], "pc1", b"pc1", b"20"),
    ],
)
async def test_an_outer_name_makes_no_computer(
    nas: Nas, names: list[x509.GeneralName], user: str, outer: bytes, vlan: bytes
) -> None:
    """Only the certificate decides whether a login belongs to a computer.

    A user with the outer name `host/NAME` does not get the VLAN of a computer.
    """
    areas = nas.wire.areas
    if user != "ann":
        await areas.add_user(areas.domain, user, b"hello")
    for kind, number in (("user", "20"), ("machine", "30")):
        rule = {"name": kind, "action": "allow", "kinds": [kind], "vlan": number}
        await areas.rules.add(areas.domain, RuleFields.model_validate(rule))
    shown = nas.authority.certificate("" if names else user, names)
    ended = await nas.log_in(TlsSide(eap.TLS, silent, shows=shown), outer)
    assert (ended.code, ended.vlan) == (ACCESS_ACCEPT, vlan)


async def test_an_outer_name_locks_no_inner_user(nas: Nas) -> None:
    """Wrong guesses with the outer name `anonymous` do not lock the inner users."""
    for number in range(3):
        nas.wire.put(datagram := pap("anonymous", f"wrong {number}", SESSION, identifier=number))
        assert (await nas.answer(datagram))[0].code == ACCESS_REJECT
    assert (await nas.log_in(peap(b"hello"))).code == ACCESS_ACCEPT
