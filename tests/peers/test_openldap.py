"""Tests of OpenLDAP as the first factor of a domain: searches, binds, causes of refusals, TLS, and complete RADIUS
logins."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from sallyport.areas.login.login import Reason
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.areas.login.first.ldap.checkers import asking, host
from tests.peers.authority import Authority
from tests.peers.programs import needs
from tests.peers.slapd import BASE, PEOPLE, SERVICE, SERVICE_PASSWORD, STAFF, Slapd, dn_of, slapd
from tests.running_service import RunningService, running_service

pytestmark = [pytest.mark.peer, needs("slapd", "ldapmodify", "ldapsearch")]

R = Reason
ACCOUNT = {"bindDN": SERVICE, "bindPassword": SERVICE_PASSWORD}
SECRET = "the device's secret"


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Return the issuer of the directories' certificates."""
    return Authority("The directory's CA")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Slapd]:
    """Yield a directory that all tests share. Each test locks or changes only its own people."""
    with slapd(tmp_path_factory.mktemp("slapd"), authority) as directory:
        yield directory


# --- people -----------------------------------------------------------------------------------------------------


async def test_everybody_is_found(directory: Slapd) -> None:
    """Names, passwords and DNs may contain any characters."""
    async with asking(servers=[directory.url], **ACCOUNT) as asked:
        assert {name: await asked.bind(name, password) for name, password in PEOPLE.items()} == dict.fromkeys(
            PEOPLE, R.NONE
        )
        assert await asked.bind("ANN", "hello") is R.NONE
        assert await asked.bind("ann", "Hello") is R.WRONG_PASSWORD


@pytest.mark.parametrize(
    "uid", ["uid:: IHRpbSA=", "uid:: dGltwqA=", "uid;lang-en: tim"], ids=["blank", "no-break", "language"]
)
async def test_a_name_that_the_directory_finds_is_known(directory: Slapd, uid: str) -> None:
    """slapd finds a name although its value has a blank or a no-break space around it, or a language option."""
    dn = f"cn=tim,{STAFF}"
    directory.add(f"dn: {dn}\nobjectClass: inetOrgPerson\n{uid}\ncn: tim\nsn: tim\nuserPassword: hello\n")
    async with asking(servers=[directory.url], **ACCOUNT) as asked:
        assert await asked.bind("tim", "hello") is R.NONE
        assert await asked.bind("tim ", "hello") is R.UNKNOWN_USER
    directory.add(f"dn: {dn}\nchangetype: delete\n")


async def test_an_account_that_has_ended(directory: Slapd) -> None:
    """slapd refuses the bind of an account that has ended. Without a bind, its attributes say that it has ended."""
    directory.change(dn_of("pia"), "add: pwdEndTime", "pwdEndTime: 20200101000000Z")
    async with asking(servers=[directory.url], **ACCOUNT) as asked:
        assert await asked.bind("pia", "hello") is R.ACCOUNT_LOCKED
        assert (await asked.ldap.look_up("pia", asked.steps.append))[0] is R.ACCOUNT_EXPIRED
    directory.change(dn_of("pia"), "delete: pwdEndTime")


async def test_an_account_that_slapd_does_not_end(directory: Slapd) -> None:
    """slapd accepts the password of an account whose shadowExpire has passed. The login is refused nevertheless."""
    dn = f"uid=gone,{STAFF}"
    person = "objectClass: inetOrgPerson\nobjectClass: shadowAccount\nuid: gone\ncn: gone\nsn: gone"
    directory.add(f"dn: {dn}\n{person}\nuserPassword: hello\nshadowExpire: 1\n")
    async with asking(servers=[directory.url], **ACCOUNT) as asked:
        assert await asked.bind("gone", "hello") is R.ACCOUNT_EXPIRED
        assert f"bind as {dn}: success" in asked.steps
    directory.add(f"dn: {dn}\nchangetype: delete\n")


async def test_groups_and_units(directory: Slapd) -> None:
    """The login has the groups of the person and the units of the entry."""
    async with asking(servers=[directory.url], **ACCOUNT) as asked:
        await asked.bind("ann", "hello")
        assert asked.found is not None
        assert (asked.found.groups, asked.found.ous) == ({"vpn users", "admins, all"}, {"people", "staff"})
        await asked.bind("bob", PEOPLE["bob"])
        assert asked.found.groups == frozenset()


@pytest.mark.parametrize(
    "name",
    ["*", "a*", "*)(uid=*", "ann)(objectClass=*", "ann\0", "\\61nn", "ann)", "(", " ann", "ann ", "\uff41nn", "anň"],
)
async def test_names_that_find_no_user(directory: Slapd, name: str) -> None:
    """A name that contains a filter finds no user. Neither does another name that the directory considers equal."""
    async with asking(servers=[directory.url], **ACCOUNT) as asked:
        before = directory.binds(dn_of("ann"))
        assert await asked.bind(name, "hello") is R.UNKNOWN_USER
        assert directory.binds(dn_of("ann")) == before


async def test_one_login_counts_once(directory: Slapd) -> None:
    """The directory counts one failure for each wrong login, even if a code is appended to the password.

    When the directory locks the account, the lock is the reason, whether the password is right or wrong.
    """
    async with asking(servers=[directory.url], **ACCOUNT) as asked:
        for failures in (1, 2, 3):
            before = directory.binds(dn_of("lou"))
            assert await asked.bind("lou", "wrong") is R.WRONG_PASSWORD
            assert directory.binds(dn_of("lou")) == before + 1
            assert len(directory.attribute(dn_of("lou"), "pwdFailureTime")) == failures
        assert await asked.bind("lou", "hello") is R.ACCOUNT_LOCKED
        assert await asked.bind("lou", "wrong") is R.ACCOUNT_LOCKED


async def test_an_empty_password_is_not_sent(directory: Slapd) -> None:
    """An empty password is not sent, because the directory would accept it as an anonymous bind."""
    async with asking(servers=[directory.url], **ACCOUNT) as asked:
        before = directory.log().count(" BIND ")
        assert await asked.bind("ann", "") is R.WRONG_PASSWORD
        assert directory.log().count(" BIND ") == before


async def test_a_password_that_must_be_changed(directory: Slapd) -> None:
    """If an admin has set the password, the user must change it.

    This is known although the service account may not read that attribute.
    """
    directory.change(dn_of("pia"), "replace: pwdReset", "pwdReset: TRUE")
    async with asking(servers=[directory.url], **ACCOUNT) as asked:
        assert await asked.bind("pia", "hello") is R.PASSWORD_MUST_CHANGE
        assert await asked.bind("ann", "hello") is R.NONE


async def test_an_expired_password(directory: Slapd) -> None:
    """A password that is older than the one second of its policy has expired."""
    directory.change(dn_of("eve"), "add: pwdPolicySubentry", f"pwdPolicySubentry: cn=short,{BASE}")
    directory.change(dn_of("eve"), "replace: userPassword", "userPassword: hello")
    async with asking(servers=[directory.url], **ACCOUNT) as asked:
        with trio.fail_after(30):
            while (reason := await asked.bind("eve", "hello")) is R.NONE:
                await trio.sleep(0.2)
        assert reason is R.PASSWORD_EXPIRED


async def test_an_anonymous_search(directory: Slapd) -> None:
    """Without a service account this directory returns no user."""
    async with asking(servers=[directory.url]) as asked:
        assert await asked.bind("ann", "hello") is R.UNKNOWN_USER


async def test_referrals_are_not_followed(directory: Slapd) -> None:
    """A referral among the results is skipped. If the base is a referral, no user is found."""
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.setblocking(False)
        port = elsewhere.getsockname()[1]
        directory.add(
            f"dn: ou=other{port},{BASE}\nobjectClass: referral\nobjectClass: extensibleObject\n"
            f"ou: other{port}\nref: ldap://127.0.0.1:{port}/{BASE}\n"
        )
        async with asking(servers=[directory.url], **ACCOUNT) as asked:
            assert await asked.bind("ann", "hello") is R.NONE
        async with asking(servers=[directory.url], **{**ACCOUNT, "baseDN": f"ou=other{port},{BASE}"}) as asked:
            assert await asked.bind("ann", "hello") is R.UNKNOWN_USER
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


async def test_a_filter_of_the_admins_own(directory: Slapd) -> None:
    """An admin's filter finds users only by its own attributes."""
    async with asking(
        servers=[directory.url], **ACCOUNT, userFilter="(&(objectClass=inetOrgPerson)(cn={user}))"
    ) as asked:
        assert await asked.bind("Comma, the", "sesame") is R.NONE
        assert await asked.bind("sallyport", SERVICE_PASSWORD) is R.UNKNOWN_USER


async def test_the_names_of_entries(directory: Slapd) -> None:
    """A bind accepts any characters in a DN. Each entry has one name for logins."""
    names = {"sharp": "C# dev", "equals": "a=b", "quote": 'a"b', "semicolon": "a;cn=root"}
    for uid, name in names.items():
        escaped = "".join(f"\\{each}" if each in '\\,+"<>;=' else each for each in name)
        directory.add(
            f"dn: cn={escaped},{STAFF}\nobjectClass: inetOrgPerson\nuid: {uid}\nuid: {uid}2\ncn: {name}\nsn: {name}\n"
            "userPassword: hello\n"
        )
    async with asking(servers=[directory.url], **ACCOUNT) as asked:
        for uid in names:
            assert await asked.bind(uid, "hello") is R.NONE, asked.steps
            assert await asked.bind(f"{uid}2", "hello") is R.UNKNOWN_USER
            assert f"log in as {uid}" in asked.steps[-1]


async def test_a_filter_that_finds_many(directory: Slapd) -> None:
    """A filter that finds many entries accepts no login."""
    async with asking(
        servers=[directory.url], **ACCOUNT, userFilter="(|(uid={user})(objectClass=inetOrgPerson))"
    ) as asked:
        assert await asked.bind("ann", "hello") is R.UNKNOWN_USER
        assert "the filter matches several entries" in asked.steps


# --- TLS --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start_tls", [False, True])
async def test_encrypted(directory: Slapd, start_tls: bool) -> None:
    """ldaps:// and StartTLS work with a certificate of the configured CA."""
    url = f"ldap://localhost:{directory.port}" if start_tls else directory.secure_url
    async with asking(servers=[url], **ACCOUNT, startTls=start_tls, caCertificate=directory.authority.pem) as asked:
        assert await asked.bind("ann", "hello") is R.NONE
        assert any("the certificate is valid for localhost" in step for step in asked.steps)
        assert await asked.bind("ann", "wrong") is R.WRONG_PASSWORD


@pytest.mark.parametrize("start_tls", [False, True])
@pytest.mark.parametrize("trusted", ["another CA", "the system's store"])
async def test_a_wrong_certificate(directory: Slapd, start_tls: bool, trusted: str) -> None:
    """If the certificate is not trusted, nothing is sent, not even the bind of the service account."""
    trust = {"caCertificate": Authority("Another CA").pem} if trusted == "another CA" else {}
    url = f"ldap://localhost:{directory.port}" if start_tls else directory.secure_url
    async with asking(servers=[url], **ACCOUNT, startTls=start_tls, **trust) as asked:
        before = directory.log().count(" BIND ")
        assert await asked.bind("ann", "hello") is R.FIRST_FACTOR_UNREACHABLE
        assert any("its certificate is not trusted" in step for step in asked.steps)
        assert directory.log().count(" BIND ") == before


@pytest.mark.parametrize(
    ("user", "password", "changed", "expected"),
    [
        pytest.param("nobody", "x", {}, f"the base DN {BASE} exists: check the user's name", id="unknown user"),
        pytest.param(
            "ann", "wrong", {}, "the service account works, but the user's password is not correct", id="user's"
        ),
        pytest.param("ann", "hello", {"baseDN": "dc=exampel,dc=com"}, "no base DN dc=exampel,dc=com that", id="base"),
        pytest.param("ann", "hello", {"bindPassword": "wrong"}, "check bindDN and bindPassword", id="bind password"),
    ],
)
async def test_each_cause_has_its_step(
    directory: Slapd, user: str, password: str, changed: dict[str, str], expected: str
) -> None:
    """A wrong base DN, an unknown user, a wrong password of the service account and a wrong password of the user have
    different steps."""
    async with asking(servers=[directory.url], **{**ACCOUNT, **changed}) as asked:
        assert await asked.bind(user, password) is not R.NONE
        assert any(expected in step for step in asked.steps), asked.steps
        hints = ("exists: check the user's name", "the user's password is not correct", "no base DN", "check bindDN")
        assert len([hint for hint in hints if any(hint in step for step in asked.steps)]) == 1


async def test_a_certificate_names_its_issuer(directory: Slapd) -> None:
    """The step contains the certificate's issuer and the setting that would trust it. This also holds for StartTLS."""
    for url, start_tls in ((directory.secure_url, False), (f"ldap://localhost:{directory.port}", True)):
        trust = Authority("Another CA").pem
        async with asking(servers=[url], **ACCOUNT, startTls=start_tls, caCertificate=trust) as asked:
            assert await asked.bind("ann", "hello") is R.FIRST_FACTOR_UNREACHABLE
            (step,) = (step for step in asked.steps if "its certificate is not trusted" in step)
            subject = directory.authority.subject
            assert f"its issuer is unknown: {subject}; trust it by caCertificate (--ca-certificate FILE)" in step


async def test_a_certificate_of_another_name(directory: Slapd) -> None:
    """A certificate must contain the host name of the URL, whatever the server's address is."""
    url = f"ldaps://localhost.localdomain:{directory.secure_port}"
    resolver = host(look_up=lambda _host, _port, _kind: ["127.0.0.1"])
    async with asking(resolver, servers=[url], **ACCOUNT, caCertificate=directory.authority.pem) as asked:
        assert await asked.bind("ann", "hello") is R.FIRST_FACTOR_UNREACHABLE
        assert any("its certificate is not trusted" in step for step in asked.steps)


# --- several servers --------------------------------------------------------------------------------------------


async def test_fail_over_and_back(tmp_path: Path, directory: Slapd, authority: Authority) -> None:
    """A server that has stopped is skipped, both for the first login and for later ones.

    It is asked again when it has returned.
    """
    with slapd(tmp_path, authority) as other:
        async with asking(
            servers=[other.secure_url, directory.secure_url], **ACCOUNT, caCertificate=authority.pem
        ) as both:
            assert await both.bind("ann", "hello") is R.NONE
            assert other.binds(dn_of("ann")) == 1
            other.stop()
            assert await both.bind("ann", "hello") is R.NONE
            assert await both.bind("ann", "wrong") is R.WRONG_PASSWORD
        other.start()
        async with asking(
            servers=[other.secure_url, directory.secure_url], **ACCOUNT, caCertificate=authority.pem
        ) as both:
            assert await both.bind("ann", "hello") is R.NONE
            assert other.binds(dn_of("ann")) == 2


async def test_many_at_once(directory: Slapd) -> None:
    """A hundred concurrent logins get a hundred right answers over a few connections that are reused."""
    reasons: list[Reason] = []

    async def login() -> None:
        reason, _ = await asked.ldap.bind("ann", "hello", lambda _step: None)
        reasons.append(reason)

    async with asking(servers=[directory.url], **ACCOUNT, timeoutSeconds=30) as asked:
        before = directory.binds(SERVICE)
        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(login)
        assert reasons == [R.NONE] * 100
        assert directory.binds(SERVICE) - before <= 100


# --- the whole service ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, directory: Slapd) -> Iterator[RunningService]:
    """Yield a service whose domain `default` uses the directory. The command line has set it."""
    with running_service(tmp_path_factory.mktemp("service"), {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        service.ok("client", "add", "nas", "--address", "127.0.0.1", "--secret", SECRET, "--org", "1", "--tenant", "1")
        authority = service.directory / "authority.pem"
        authority.write_text(directory.authority.pem)
        expected = service.ok(
            "domain", "first-factor", "default", "ldap", "--ldap-server", directory.secure_url, "--base-dn", BASE,
            "--bind-dn", SERVICE, "--bind-password", "-", "--ca-certificate", str(authority),
            input=SERVICE_PASSWORD + "\n",
        )  # fmt: skip
        assert SERVICE_PASSWORD not in expected
        yield service


def test_a_radius_login(service: RunningService, directory: Slapd) -> None:
    """A RADIUS login gets its answer and has its event, and no password is in the log."""
    with service.radius(SECRET) as client:
        assert client.login("ann", "hello") == ACCESS_ACCEPT
        assert client.login("zoë", PEOPLE["zoë"]) == ACCESS_ACCEPT
        assert client.login("ann", "not the password") == ACCESS_REJECT
        assert client.login("nobody", "hello") == ACCESS_REJECT
    kept = service.rows("select user_name, decision, reason from events order by id desc limit 2")
    assert kept == [("nobody", "reject", R.UNKNOWN_USER.value), ("ann", "reject", R.WRONG_PASSWORD.value)]
    assert SERVICE_PASSWORD not in service.log() and "not the password" not in service.log()


def test_a_rule_for_a_group(service: RunningService) -> None:
    """Login rules apply to groups of the directory. A user without a group does not match such a rule."""
    rule = {"orgId": 1, "tenantId": 1, "domainId": 1, "name": "vpn", "action": "block", "groups": ["VPN Users"]}
    service.post("/ad/AddLoginRule", {**rule})
    with service.radius(SECRET) as client:
        assert client.login("ann", "hello") == ACCESS_ACCEPT  # it monitors
        assert client.login("bob", PEOPLE["bob"]) == ACCESS_ACCEPT
    kept = service.rows("select user_name, would_have_been, reason from events order by id desc limit 2")
    assert kept[1] == ("ann", "reject", R.BLOCKED.value)
    assert kept[0][2] != R.BLOCKED.value


def test_the_settings_are_shown(service: RunningService, directory: Slapd) -> None:
    """The command line shows the settings without the password.

    If fields are wrong, they are named and nothing is changed.
    """
    shown = json.loads(service.ok("domain", "first-factor", "default"))
    assert (shown["firstFactor"], shown["ldap"]["servers"]) == ("ldap", [directory.secure_url])
    assert "bindPassword" not in shown["ldap"]
    refused = service.cli("domain", "first-factor", "default", "ldap", "--ldap-server", "ldap://dc1", "--base-dn", BASE)
    assert refused.returncode == 1 and "unencrypted" in refused.stderr
    misplaced = service.cli("domain", "first-factor", "default", "local", "--base-dn", BASE)
    assert misplaced.returncode == 2
    assert json.loads(service.ok("domain", "first-factor", "default")) == shown


def test_domain_check_shows_each_step(service: RunningService) -> None:
    """`domain check` shows each step, has the same result as a login, and records no event."""
    before = service.rows("select count(*) from events")
    right = service.cli("domain", "check", "default", "--user", "ann", "--password", "-", input="hello\n")
    assert right.returncode == 0, right
    assert f"found {dn_of('ann')}" in right.stdout and "groups: admins, all, vpn users" in right.stdout
    wrong = service.cli("domain", "check", "default", "--user", "ann", "--password", "-", input="nothello\n")
    assert wrong.returncode == 1
    assert wrong.stdout.splitlines()[-1] == f"refused: {R.WRONG_PASSWORD}"
    assert "nothello" not in wrong.stdout + wrong.stderr
    assert service.rows("select count(*) from events") == before


def test_domain_check_over_http(service: RunningService) -> None:
    """`domain check` over HTTP has the same steps. The number of checks in a minute is limited."""
    body = {"orgId": 1, "tenantId": 1, "domainId": 1, "userName": "bob", "password": PEOPLE["bob"]}
    expected = service.post("/ad/CheckFirstFactor", body)
    assert (expected["code"], expected["status"], expected["reason"]) == (200, "Success", "")
    assert f"found {dn_of('bob')}" in expected["steps"]
    statuses = [service.request("POST", "/ad/CheckFirstFactor", json=body).status_code for _ in range(6)]
    assert statuses == [200] * 4 + [429] * 2
    assert STAFF in json.dumps(expected)
