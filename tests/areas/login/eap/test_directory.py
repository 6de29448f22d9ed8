"""Tests of EAP in a domain whose users are in a directory: methods that a bind can check, and methods that need
winbind."""

from collections.abc import Callable
from typing import ClassVar

import pytest
import trio
from cryptography import x509

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.login.first.checker import Checker, DirectoryAccount, Host, Tell
from sallyport.areas.login.first.fields import Fields
from sallyport.areas.login.login import NOTHING, FirstFactorResult, Found, Login, Reason
from sallyport.areas.mfa.provider import Outcome
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.packet import IDENTITY, RESPONSE, Packet, encode
from sallyport.radius.mschap import MsChap1, MsChap2, NtKey, nt_hash, nt_hash_hash
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas.login.eap.conftest import Nas
from tests.areas.login.listen.second import events
from tests.areas.login.second.scripted import Script
from tests.radius.eap.supplicant import (
    GtcSide,
    Inside,
    Md5Side,
    MsChapSide,
    Side,
    Supplicant,
    TlsSide,
    in_peap,
    in_ttls_chap,
    in_ttls_eap,
    in_ttls_mschap,
    in_ttls_pap,
    silent,
)

ANN, PASSWORD = b"ann", "s3cret"
NO_PROVIDER = Reason.NO_PROVIDER.value


class ListFields(Fields):
    """Settings of the test's directory.

    winbind: whether winbind checks MS-CHAP. codeDigits: the number of digits of a code that is appended to the
    password. password: everybody's password.
    """

    winbind: bool = False
    password: str = PASSWORD
    codeDigits: int = 6  # noqa: N815

    def checker(self, host: Host) -> Checker:
        """Return the directory below."""
        return Listed(self)


class Listed:
    """A directory inside the test process. Its only user is ann, a member of the group staff."""

    name: ClassVar[str] = "ldap"
    disabled: ClassVar[set[str]] = set()
    accounts: ClassVar[dict[str, DirectoryAccount]] = {
        "ann": DirectoryAccount("ann", "S-1-5-21-1-2-3-1104", "ann@corp.example"),
        "host/pc1.corp": DirectoryAccount("PC1$", "S-1-5-21-1-2-3-2000", is_machine=True),
    }

    def __init__(self, fields: ListFields) -> None:
        self._fields = fields

    @property
    def checks_mschap(self) -> bool:
        """Return the configured value."""
        return self._fields.winbind

    @property
    def code_digits(self) -> int:
        """Return the configured value."""
        return self._fields.codeDigits

    async def bind(self, user: str, password: str, tell: Tell) -> tuple[Reason, Found]:
        """Accept the configured password."""
        reason, found = await self.look_up(user, tell)
        if reason is Reason.NONE and password != self._fields.password:
            return Reason.WRONG_PASSWORD, NOTHING
        return reason, found

    async def ask_winbind(
        self, user: str, attempt: MsChap1 | MsChap2, name: bytes, tell: Tell
    ) -> tuple[bytes | Reason, Found]:
        """Check a response against the password s3cret."""
        reason, found = await self.look_up(user, tell)
        hashed = nt_hash(PASSWORD.encode())
        if reason is not Reason.NONE:
            return reason, NOTHING
        return (nt_hash_hash(hashed), found) if NtKey(hashed).made(attempt, name) else (Reason.WRONG_PASSWORD, NOTHING)

    async def look_up(self, user: str, tell: Tell) -> tuple[Reason, Found]:
        """Find ann, unless she is disabled, and the computer PC1."""
        await trio.lowlevel.checkpoint()
        if user in self.disabled:
            return Reason.ACCOUNT_DISABLED, NOTHING
        is_there = user in ("ann", "host/pc1.corp", "host/pc1.dmz")
        return (Reason.NONE, Found(groups=frozenset({"staff"}))) if is_there else (Reason.UNKNOWN_USER, NOTHING)

    async def identify(
        self, user: str, tell: Tell, *, by_sid: bool = False
    ) -> tuple[Reason, Found, DirectoryAccount | None]:
        """Find a user as `look_up` does, or an account by its SID."""
        if by_sid:
            user = next((name for name, account in self.accounts.items() if account.sid == user), "")
        reason, found = await self.look_up(user, tell)
        return reason, found, self.accounts.get(user, DirectoryAccount(user)) if reason is Reason.NONE else None

    async def check(self, login: Login, takes_code: Callable[[], bool], tell: Tell) -> FirstFactorResult:
        """Return METHOD_UNFIT. EAP never calls this method."""
        return FirstFactorResult(Reason.METHOD_UNFIT)

    async def run(self) -> None:
        """Run no background work."""
        await trio.sleep_forever()


async def configure(
    nas: Nas, *, winbind: bool = False, kind: type[Fields] = ListFields, password: str = PASSWORD
) -> None:
    """Make the directory the first factor of the domain."""
    areas = nas.wire.areas
    areas.first_kinds[FirstFactor.LDAP] = kind
    areas.clock.pass_by(1)  # a new row gets a new checker
    domain = areas.domains.table.by_id[areas.domain]
    await areas.first_settings.set(domain, FirstFactor.LDAP, {"ldap": {"winbind": winbind, "password": password}})


def ttls(inside: Inside) -> TlsSide:
    """Return a supplicant with EAP-TTLS."""
    return TlsSide(eap.TTLS, inside, begins=True)


BINDS: dict[str, Callable[[bytes], Side]] = {
    "eap-peap-gtc": lambda password: TlsSide(eap.PEAP, in_peap(ANN, GtcSide(password))),
    "eap-ttls-pap": lambda password: ttls(in_ttls_pap(ANN, password)),
    "eap-ttls-eap-gtc": lambda password: ttls(in_ttls_eap(ANN, GtcSide(password))),
}
WINBIND: dict[str, Callable[[bytes], Side]] = {
    "eap-peap-mschapv2": lambda password: TlsSide(eap.PEAP, in_peap(ANN, MsChapSide(ANN, password))),
    "eap-ttls-mschapv2": lambda password: ttls(in_ttls_mschap(ANN, password)),
    "eap-mschapv2": lambda password: MsChapSide(ANN, password),
}
NEVER: dict[str, Callable[[bytes], Side]] = {
    "eap-ttls-chap": lambda password: ttls(in_ttls_chap(ANN, password)),
    "eap-md5": Md5Side,
}


async def test_the_event_has_the_time_of_the_directory(nas: Nas) -> None:
    """The directory is asked in an earlier round than the last one. The event has the time of this round."""
    await configure(nas)
    assert (await nas.log_in(BINDS["eap-peap-gtc"](PASSWORD.encode()))).code == ACCESS_ACCEPT
    assert (await nas.log_in(BINDS["eap-peap-gtc"](b"wrong"))).code == ACCESS_REJECT
    for event in await events(nas.wire.areas):
        assert event.first_us > 0
        assert event.second_us == 0


async def test_a_session_is_of_one_first_factor(nas: Nas) -> None:
    """If the first factor was changed, an older TLS session is not resumed: the new first factor checks the password
    again."""
    before = TlsSide(eap.PEAP, in_peap(ANN, GtcSide(b"hello")))
    assert (await nas.log_in(before)).code == ACCESS_ACCEPT
    await configure(nas)
    assert (await nas.log_in(TlsSide(eap.PEAP, in_peap(ANN, GtcSide(b"hello")), before=before))).code == ACCESS_REJECT
    assert (await nas.outcomes())[-1] == ("wrong password", "ann", "eap-peap-gtc")


async def test_a_session_is_of_one_directory(nas: Nas) -> None:
    """If the directory was changed, an older TLS session is not resumed: the new directory checks the
    password again."""
    await configure(nas)
    before = TlsSide(eap.PEAP, in_peap(ANN, GtcSide(b"s3cret")))
    assert (await nas.log_in(before)).code == ACCESS_ACCEPT
    resumed = TlsSide(eap.PEAP, in_peap(ANN, GtcSide(b"not asked for")), before=before)
    assert (await nas.log_in(resumed)).code == ACCESS_ACCEPT
    await configure(nas)
    assert (await nas.log_in(TlsSide(eap.PEAP, in_peap(ANN, GtcSide(b"x")), before=before))).code == ACCESS_REJECT
    assert [method for *_, method in await nas.outcomes()] == ["eap-peap-gtc", "eap-peap-resumed", "eap-peap-gtc"]


async def test_a_conversation_is_with_one_directory(nas: Nas) -> None:
    """If the directory is changed during a conversation, the login is rejected, because the name may belong to another
    person there."""
    await configure(nas)
    inner = GtcSide(b"s3cret")
    supplicant, state = Supplicant(ANN, TlsSide(eap.PEAP, in_peap(ANN, inner))), b""
    response, ended = encode(Packet(RESPONSE, 0, IDENTITY, ANN)), None
    while ended is None or ended.code == ACCESS_CHALLENGE:
        asked = len(inner.prompts)
        response = response if ended is None else supplicant.respond(ended.eap)
        nas.wire.put(datagram := nas.request(response, ANN, state))
        ended, state = await nas.answer(datagram)
        if len(inner.prompts) > asked:  # the password has been checked, but the answer has not been sent yet
            await configure(nas)
    assert ended.code == ACCESS_REJECT
    assert [reason for reason, *_ in await nas.outcomes()] == [Reason.FIRST_FACTOR_CHANGED]


@pytest.mark.parametrize("method", BINDS)
async def test_a_bind_with_a_password_in_windows_1252(nas: Nas, method: str) -> None:
    """A password in Windows-1252 inside a tunnel is converted for the bind."""
    await configure(nas, password="5 €")
    for octets in ("5 €".encode("cp1252"), "5 €".encode()):
        assert (await nas.log_in(BINDS[method](octets), ANN)).code == ACCESS_ACCEPT


@pytest.mark.parametrize("method", BINDS)
async def test_a_bind_checks_the_password(nas: Nas, method: str) -> None:
    """The bind decides whether the password is right. The event has the directory's reason."""
    await configure(nas)
    assert (await nas.log_in(BINDS[method](b"s3cret"), ANN)).code == ACCESS_ACCEPT
    assert (await nas.log_in(BINDS[method](b"wrong"), ANN)).code == ACCESS_REJECT
    assert await nas.outcomes() == [(NO_PROVIDER, "ann", method), ("wrong password", "ann", method)]


@pytest.mark.parametrize("method", WINBIND)
async def test_winbind_checks_mschapv2(nas: Nas, method: str) -> None:
    """Methods that use MS-CHAPv2 work with winbind.

    Without winbind they are not offered, and the event gives that reason.
    """
    await configure(nas)
    assert (await nas.log_in(WINBIND[method](b"s3cret"), ANN)).code == ACCESS_REJECT
    await configure(nas, winbind=True)
    assert (await nas.log_in(WINBIND[method](b"s3cret"), ANN)).code == ACCESS_ACCEPT
    assert (await nas.log_in(WINBIND[method](b"wrong"), ANN)).code == ACCESS_REJECT
    assert [reason for reason, *_ in await nas.outcomes()] == [Reason.METHOD_UNFIT, NO_PROVIDER, "wrong password"]


class HeldFields(ListFields):
    """Settings of the directory below."""

    def checker(self, host: Host) -> Checker:
        """Return the directory below."""
        return Held(self)


class Held(Listed):
    """A directory that holds each question until the test releases it. asked: the questions, in order."""

    asked: ClassVar[list[trio.Event]] = []

    async def ask_winbind(
        self, user: str, attempt: MsChap1 | MsChap2, name: bytes, tell: Tell
    ) -> tuple[bytes | Reason, Found]:
        """Wait for the test, then check the response."""
        release = trio.Event()
        self.asked.append(release)
        await release.wait()
        return await super().ask_winbind(user, attempt, name, tell)


async def test_a_lock_out_while_the_directory_is_asked(nas: Nas) -> None:
    """If other tries lock the user out while the directory checks a password, the client does not learn whether this
    password is right. Otherwise simultaneous tries would be guesses beyond the limit."""
    await configure(nas, winbind=True, kind=HeldFields)
    Held.asked = []
    sent: list[bytes] = []
    for password in (b"wrong 1", b"wrong 2", b"wrong 3", b"s3cret"):
        sent.append(await tried(nas, password))
        nas.wire.put(sent[-1])
        while len(Held.asked) < len(sent):
            await trio.lowlevel.checkpoint()
    errors = []
    for datagram, release in zip(sent, Held.asked, strict=True):
        release.set()
        ended, _ = await nas.answer(datagram)
        errors.append((ended.code, b"E=691" in ended.eap, b"S=" in ended.eap))
    assert errors == [(ACCESS_CHALLENGE, True, False)] * 3 + [(ACCESS_REJECT, False, False)]
    reasons = [reason for reason, *_ in await nas.outcomes()]
    assert reasons == ["wrong password"] * 3 + ["locked out after failures"]


async def tried(nas: Nas, password: bytes) -> bytes:
    """Return the request with an MS-CHAPv2 response, after the rounds before it."""
    side = MsChapSide(ANN, password)
    supplicant, state, response = Supplicant(ANN, side), b"", encode(Packet(RESPONSE, 0, IDENTITY, ANN))
    while eap.decode(response).kind != side.kind:
        datagram = nas.request(response, ANN, state)
        nas.wire.put(datagram)
        ended, state = await nas.answer(datagram)
        response = supplicant.respond(ended.eap)
    return nas.request(response, ANN, state)


@pytest.mark.parametrize("method", NEVER)
async def test_methods_that_need_the_password_are_not_offered(nas: Nas, method: str) -> None:
    """MD5 and CHAP are never offered for a directory, because they need the password itself."""
    await configure(nas, winbind=True)
    assert (await nas.log_in(NEVER[method](b"s3cret"), ANN)).code == ACCESS_REJECT
    assert [reason for reason, *_ in await nas.outcomes()] == [Reason.METHOD_UNFIT]


async def test_the_present_state_of_the_directory_applies(nas: Nas) -> None:
    """Logins by certificate and resumed sessions are checked against the present state of the directory."""
    await configure(nas)
    certificate = nas.authority.certificate("ann")
    before = ttls(in_ttls_pap(ANN, b"s3cret"))
    assert (await nas.log_in(TlsSide(eap.TLS, silent, shows=certificate))).code == ACCESS_ACCEPT
    assert (await nas.log_in(before)).code == ACCESS_ACCEPT
    Listed.disabled = {"ann"}
    try:
        assert (await nas.log_in(TlsSide(eap.TLS, silent, shows=certificate))).code == ACCESS_REJECT
        again = TlsSide(eap.TTLS, in_ttls_pap(ANN, b"s3cret"), begins=True, before=before)
        assert (await nas.log_in(again)).code == ACCESS_REJECT
    finally:
        Listed.disabled = set()
    assert [(reason, method) for reason, _, method in await nas.outcomes()] == [
        (NO_PROVIDER, "eap-tls"), (NO_PROVIDER, "eap-ttls-pap"),
        (Reason.ACCOUNT_DISABLED, "eap-tls"), (Reason.ACCOUNT_DISABLED, "eap-ttls-pap"),
    ]  # fmt: skip


async def test_a_computer_by_its_host_name(nas: Nas) -> None:
    """A computer's certificate contains its host name, and the directory finds the account by host/NAME.

    A host of another realm is rejected, even if the first label of its name is the same.
    """
    await configure(nas)
    await nas.wire.areas.domains.add(nas.wire.areas.tenant, "branch")
    for host, code in (("pc1.corp", ACCESS_ACCEPT), ("pc2.corp", ACCESS_REJECT), ("pc1.dmz", ACCESS_REJECT)):
        shown = nas.authority.certificate("", [x509.DNSName(host)])
        assert (await nas.log_in(TlsSide(eap.TLS, silent, shows=shown), f"host/{host}".encode())).code == code
    assert await nas.outcomes() == [
        (NO_PROVIDER, "pc1.corp", "eap-tls"), ("unknown user", "pc2.corp", "eap-tls"),
        (Reason.UNKNOWN_REALM, "host/pc1.dmz", "eap-tls"),
    ]  # fmt: skip


async def test_a_code_appended_to_the_password(nas: Nas, script: Script) -> None:
    """If the user's second factor is a code, the last six digits are not part of the password in the bind."""
    await configure(nas)
    script.begins = Outcome.CODE
    ended = await nas.log_in(ttls(in_ttls_pap(ANN, b"s3cret123456")))
    assert (ended.code, [code for code, _ in script.verified]) == (ACCESS_ACCEPT, ["123456"])


class Broken(ListFields):
    """A configuration that cannot make a checker."""

    def checker(self, host: Host) -> Checker:
        """Raise an error instead of making a checker."""
        raise ValueError("of no use")


async def test_a_first_factor_that_cannot_be_read(nas: Nas) -> None:
    """If the configuration of the first factor cannot be read, no conversation begins, and the event gives
    the reason."""
    await configure(nas, kind=Broken)
    ended = await nas.log_in(BINDS["eap-ttls-pap"](b"s3cret"))
    assert (ended.code, ended.eap[0]) == (ACCESS_REJECT, eap.FAILURE)
    assert [reason for reason, *_ in await nas.outcomes()] == [Reason.FIRST_FACTOR_UNREADABLE]
