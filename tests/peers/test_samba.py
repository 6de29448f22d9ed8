"""Tests of Active Directory as the first factor: MS-CHAP through winbind on a joined host, PAP over LDAP, and groups
with both."""

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from sallyport.areas.login.first.winbind.checker import Winbind
from sallyport.areas.login.first.winbind.helpers import Helpers
from sallyport.areas.login.first.winbind.texts import NO_PIPE, NOT_RUNNING, remedy_of, why_refused
from sallyport.areas.login.login import Reason
from sallyport.radius.attributes import VENDOR_SPECIFIC, pull_attributes, pull_vendor_attributes
from sallyport.radius.mschap import (
    MICROSOFT,
    MS_CHAP2_SUCCESS,
    MS_CHAP_ERROR,
    MS_CHAP_MPPE_KEYS,
    MsChap1,
    MsChap2,
    authenticator_response,
    challenge_response,
    nt_hash,
    nt_hash_hash,
    recognise,
)
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT, SharedSecret, decode, decode_reply
from sallyport.radius.password import reveal_blocks
from tests.areas import SECRET
from tests.packets import mschap1, mschap2, pap
from tests.peers.programs import needs, radclient
from tests.peers.samba import (
    BASE,
    COMPUTER,
    COMPUTER_PASSWORD,
    DC_NAME,
    NT_DOMAIN,
    OTHER_PASSWORD,
    PASSWORD,
    REALM,
    THRESHOLD,
    Corp,
    needs_samba,
)
from tests.peers.second_factor import event
from tests.radius_client import RadiusClient
from tests.running_service import RunningService

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_samba]

DOMAIN = "corp.example"


class Office:
    """The service on the joined host, and a device on that host."""

    def __init__(self, service: RunningService, device: RadiusClient) -> None:
        self.service = service
        self._device = device

    def login(self, packet: bytes) -> tuple[int, dict[int, bytes]]:
        """Log in. Return the code of the answer and its Microsoft attributes."""
        self._device.send(packet)
        reply = self._device.sock.recv(4096)
        code, _ = decode_reply(reply, packet, self._device.secret)
        found: dict[int, bytes] = {}
        for kind, value in pull_attributes(memoryview(reply)[20:]):
            if kind == VENDOR_SPECIFIC:
                vendor, pairs = pull_vendor_attributes(value)
                assert vendor == MICROSOFT
                found.update((name, bytes(octets)) for name, octets in pairs)
        return code, found

    def reason(self, user: str) -> str:
        """Return the reason of the last login of a user."""
        return str(event(self.service, user)[2])


@pytest.fixture(scope="module")
def office(corp: Corp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """Yield the service with the domain corp.example.

    The domain has the realm CORP, and the directory checks its passwords.
    """
    settings = {"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_LOCKOUT_FAILURES": "0"}
    service = RunningService(tmp_path_factory.mktemp("office"), settings, wrapper=corp.host.wrapper)
    try:
        service.start()
        _configure(service, corp)
        with corp.host.inside():
            device = RadiusClient(service.ports.auth, SECRET, timeout=15)
        with device:
            yield Office(service, device)
    finally:
        service.kill()


def _configure(service: RunningService, corp: Corp) -> None:
    service.add_domain(DOMAIN, realms=[NT_DOMAIN])
    service.add_client("devices", "127.0.0.1", SECRET, DOMAIN)
    directory = {
        "servers": [f"ldaps://{DC_NAME}"],
        "baseDN": BASE,
        "bindDN": f"reader@{REALM.lower()}",
        "bindPassword": PASSWORD,
        "caCertificate": corp.authority.pem,
        "winbind": True,
    }
    service.run("/ad/SetFirstFactor", {"firstFactor": "ldap", "ldap": directory}, domain=DOMAIN)


def proven(packet: bytes, password: str, name: bytes) -> bytes:
    """Return the MS-CHAP2-Success that only a server with the password can make."""
    attempt = recognise(decode(packet, SharedSecret(SECRET)).vendor_values())
    assert isinstance(attempt, MsChap2)
    hashed = nt_hash_hash(nt_hash(password.encode()))
    return bytes((attempt.identifier,)) + authenticator_response(attempt, hashed, name)


# --- MS-CHAP ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "password", "hashed"),
    [
        ("ann", PASSWORD, "ann"),
        ("ANN", PASSWORD, "ANN"),
        ("jörg", OTHER_PASSWORD, "jörg"),
        ("ann@corp.example", PASSWORD, "ann@corp.example"),
        ("CORP\\ann", PASSWORD, "ann"),
        (f"host/{COMPUTER}.corp.example", COMPUTER_PASSWORD, f"host/{COMPUTER}.corp.example"),
    ],
)
def test_the_second_version(office: Office, user: str, password: str, hashed: str) -> None:
    """The right password is accepted with any form of the name.

    The answer proves that the domain knows the password.
    """
    packet = mschap2(user, password, hashed_name=hashed.encode())
    code, found = office.login(packet)
    assert code == ACCESS_ACCEPT, office.service.log()[-2000:]
    assert found[MS_CHAP2_SUCCESS] == proven(packet, password, hashed.encode())


def test_the_first_version(office: Office) -> None:
    """The right password is accepted, and both sides have the same key."""
    packet = mschap1("ann", PASSWORD)
    code, found = office.login(packet)
    assert code == ACCESS_ACCEPT
    keys = reveal_blocks(found[MS_CHAP_MPPE_KEYS], SharedSecret(SECRET), packet[4:20])
    assert keys[8:24] == nt_hash_hash(nt_hash(PASSWORD.encode()))


@needs("radclient")
def test_radclient_logs_in(office: Office, corp: Corp, tmp_path: Path) -> None:
    """radclient logs in by MS-CHAP with a right and with a wrong password."""
    server = f"127.0.0.1:{office.service.ports.auth}"
    for password, expected in ((PASSWORD, "Received Access-Accept"), ("wrong", "E=691 R=1")):
        with corp.host.inside():
            attributes = ['User-Name = "ann"', f'MS-CHAP-Password = "{password}"', "Message-Authenticator = 0x00"]
            step = radclient(tmp_path, "auth", server, SECRET.decode(), attributes, wait_s=15)
        assert expected in step, step


def test_domain_check_shows_the_account(office: Office) -> None:
    """`domain check` shows the account that was found and the answer of the domain controller."""
    asked = {"userName": "ann", "mschap": True}
    right = office.service.run("/ad/CheckFirstFactor", {"password": PASSWORD, **asked}, domain=DOMAIN)
    assert right["reason"] == ""
    assert "winbind is asked about ann" in right["steps"]
    assert right["steps"][-1] == "the password is right; groups: staff"
    wrong = office.service.run("/ad/CheckFirstFactor", {"password": "wrong", **asked}, domain=DOMAIN)
    assert wrong["steps"][-1] == f"refused: {Reason.WRONG_PASSWORD}"


def test_each_wrong_login_counts_once(office: Office, corp: Corp) -> None:
    """The directory counts one failure for each wrong login, for each method and each name in the hash.

    A right login resets the count.
    """
    for count, packet in enumerate((mschap2("bob", "wrong"), mschap1("bob", "wrong"), pap("bob", "wrong")), start=1):
        assert office.login(packet)[0] == ACCESS_REJECT
        assert office.reason("bob") == Reason.WRONG_PASSWORD
        assert corp.wrong_passwords("bob") == count
    assert office.login(mschap2("bob", PASSWORD))[0] == ACCESS_ACCEPT
    assert corp.wrong_passwords("bob") == 0
    office.login(mschap2("CORP\\bob", PASSWORD, hashed_name=b"CORP\\bob"))
    assert corp.wrong_passwords("bob") == 1


def test_the_directory_locks_out(office: Office) -> None:
    """After the maximum number of wrong passwords the directory refuses the right password for each method.

    The event has the reason.
    """
    for _ in range(THRESHOLD):
        assert office.login(mschap2("lou", "wrong"))[0] == ACCESS_REJECT
    for packet in (mschap2("lou", PASSWORD), pap("lou", PASSWORD)):
        assert office.login(packet)[0] == ACCESS_REJECT
        assert office.reason("lou") == Reason.ACCOUNT_LOCKED


@pytest.mark.parametrize(
    ("user", "reason", "code"),
    [
        ("off", Reason.ACCOUNT_DISABLED, b"E=647 R=0"),
        ("gone", Reason.ACCOUNT_EXPIRED, b"E=647 R=0"),
        ("must", Reason.PASSWORD_MUST_CHANGE, b"E=648 R=0"),
        ("nobody", Reason.UNKNOWN_USER, b"E=691 R=1"),
    ],
)
def test_states_of_accounts(office: Office, user: str, reason: Reason, code: bytes) -> None:
    """For each state of an account each method reports a reason.

    MS-CHAP also sends the client the number of the error.
    """
    rejected, found = office.login(mschap2(user, PASSWORD))
    assert (rejected, office.reason(user)) == (ACCESS_REJECT, reason)
    assert found[MS_CHAP_ERROR][1:].startswith(code)
    assert office.login(pap(user, PASSWORD))[0] == ACCESS_REJECT
    assert office.reason(user) == reason


# --- PAP and groups ---------------------------------------------------------------------------------------------


def test_a_password_is_bound_with(office: Office) -> None:
    """PAP is checked by a bind over TLS. The domain's authority has signed the certificate."""
    assert office.login(pap("ann", PASSWORD))[0] == ACCESS_ACCEPT
    assert office.login(pap("jörg", OTHER_PASSWORD))[0] == ACCESS_ACCEPT
    assert office.login(pap("ann", OTHER_PASSWORD))[0] == ACCESS_REJECT


def test_groups_count_by_each_method(office: Office) -> None:
    """A rule for a group of the directory applies to the members of the group, for each method."""
    office.service.add_rule(DOMAIN, name="no staff", action="block", groups=["staff"])
    office.service.add_rule(DOMAIN, name="others", action="allow", everyone=True)
    office.service.set_mode(DOMAIN, "enforce")
    try:
        for packet in (mschap2("ann", PASSWORD), pap("ann", PASSWORD)):
            assert office.login(packet)[0] == ACCESS_REJECT
            assert office.reason("ann") == Reason.BLOCKED
        for packet in (mschap2("bob", PASSWORD), pap("bob", PASSWORD)):
            assert office.login(packet)[0] == ACCESS_ACCEPT
    finally:
        office.service.set_mode(DOMAIN, "monitor")


# --- ntlm_auth --------------------------------------------------------------------------------------------------


UNPRIVILEGED = "setpriv --reuid=65534 --regid=65534 --clear-groups"


async def asked(corp: Corp, directory: Path, user: str, password: str, *, within: str = "") -> tuple[object, str]:
    """Return the answer to a question about a user's password on the joined host, and its step.

    within: a function that runs the programs.
    """
    for name in ("ntlm_auth", "wbinfo"):
        program = directory / name
        program.write_text(f'#!/bin/sh\nexec {" ".join(corp.host.wrapper)} {within} {name} "$@"\n')
        program.chmod(0o755)
    steps: list[str] = []
    attempt = MsChap1(1, bytes(8), challenge_response(bytes(8), nt_hash(password.encode())))
    helpers = Helpers(directory / "ntlm_auth")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(helpers.run)
        answer = await Winbind(helpers, "corp", "").ask(user, attempt, b"", steps.append)
        nursery.cancel_scope.cancel()
    return answer, steps[-1]


async def test_faults_of_winbind_are_named(corp: Corp, tmp_path: Path) -> None:
    """A wrong password, an unknown user, a pipe without permission and a missing winbindd have different reasons and
    steps."""
    assert (await asked(corp, tmp_path, "ann", PASSWORD))[0] == nt_hash_hash(nt_hash(PASSWORD.encode()))
    reason, step = await asked(corp, tmp_path, "ann", "wrong")
    assert (reason, "the user's password is not right" in step) == (Reason.WRONG_PASSWORD, True)
    reason, step = await asked(corp, tmp_path, "nobody", PASSWORD)
    assert (reason, "check the name" in step) == (Reason.UNKNOWN_USER, True)
    reason, step = await asked(corp, tmp_path, "ann", PASSWORD, within=UNPRIVILEGED)
    assert (reason, step.endswith(NO_PIPE)) == (Reason.FIRST_FACTOR_UNREACHABLE, True), step
    corp.host.run("mv", "/run/samba/winbindd", "/run/samba/away")
    try:
        reason, step = await asked(corp, tmp_path, "ann", PASSWORD)
    finally:
        corp.host.run("mv", "/run/samba/away", "/run/samba/winbindd")
    assert (reason, step.endswith(NOT_RUNNING)) == (Reason.FIRST_FACTOR_UNREACHABLE, True), step


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (0xC0000133, "synchronize this host"),
        (0xC0000022, "net ads join"),
        (0xC00000DA, "net ads join"),
        (0xC000018A, "net ads join"),
        (0xC000018B, "net ads join"),
        (0xC000018D, "net ads join"),
        (0xC000005E, "no domain controller answers"),
        (0xC00000B5, "no domain controller answers"),
        (0xC0000233, "no domain controller answers"),
        (0xC000023C, "no domain controller answers"),
        (0xC000023D, "no domain controller answers"),
        (0xC00000DF, "winbindDomain"),
        (0xC0000418, "refuse NTLM"),
        (0xC000006A, "the user's password is not right"),
        (0xC000006D, "wbinfo -t"),
        (0xC0000064, "check the name"),
    ],
)
def test_a_status_has_a_remedy(status: int, remedy: str) -> None:
    """Each text of this Samba version leads to one next step (numbers: MS-ERREF section 2.3.1)."""
    samba = ctypes.CDLL("libsamba-errors.so.1")
    samba.get_friendly_nt_error_msg.restype = ctypes.c_char_p
    assert remedy in remedy_of(samba.get_friendly_nt_error_msg(ctypes.c_uint32(status)).decode())


def test_all_texts_of_this_samba_are_known() -> None:
    """Each NTSTATUS text of this Samba version gives the right reason (numbers: MS-ERREF section 2.3.1)."""
    samba = ctypes.CDLL("libsamba-errors.so.1")
    samba.get_friendly_nt_error_msg.restype = ctypes.c_char_p
    expected = {
        0xC0000064: Reason.UNKNOWN_USER,
        0xC000006A: Reason.WRONG_PASSWORD,
        0xC000006D: Reason.WRONG_PASSWORD,
        0xC000006E: Reason.LOGON_RESTRICTED,
        0xC000006F: Reason.LOGON_RESTRICTED,
        0xC0000070: Reason.LOGON_RESTRICTED,
        0xC0000071: Reason.PASSWORD_EXPIRED,
        0xC0000072: Reason.ACCOUNT_DISABLED,
        0xC000015B: Reason.LOGON_RESTRICTED,
        0xC0000193: Reason.ACCOUNT_EXPIRED,
        0xC0000224: Reason.PASSWORD_MUST_CHANGE,
        0xC0000234: Reason.ACCOUNT_LOCKED,
        0xC0000001: Reason.FIRST_FACTOR_UNREACHABLE,
        0xC0000022: Reason.FIRST_FACTOR_UNREACHABLE,
        0xC000005E: Reason.FIRST_FACTOR_UNREACHABLE,
        0xC00000DF: Reason.FIRST_FACTOR_UNREACHABLE,
        0xC000018B: Reason.FIRST_FACTOR_UNREACHABLE,
        0xC0000418: Reason.FIRST_FACTOR_UNREACHABLE,
    }
    step = {code: why_refused(samba.get_friendly_nt_error_msg(ctypes.c_uint32(code)).decode()) for code in expected}
    assert step == expected
