"""Tests of a login against a directory: the messages that are sent to it, and the errors that it causes."""

import pytest

from sallyport.areas.directory.reading.search import escaped
from sallyport.areas.login.eap.verifiers import Binds
from sallyport.areas.login.login import Reason
from sallyport.radius.attributes import USER_PASSWORD
from sallyport.radius.password import Method
from tests.areas import SetClock
from tests.areas.directory.reading.fake_directory import Manner, Person, directory
from tests.areas.login.conftest import FakeListener
from tests.areas.login.first.ldap.checkers import Asked, asking, host
from tests.outgoing.counted import CountedTurns
from tests.packets import chap, pap

R = Reason
SERVICE = {"bindDN": "cn=service", "bindPassword": "service"}


@pytest.mark.parametrize(
    ("value", "written"),
    [("ann", "ann"), ("*)(uid=*", "\\2a\\29\\28uid=\\2a"), ("a\\b\0", "a\\5cb\\00"), ("zoë", "zoë")],
)
def test_names_are_escaped(value: str, written: str) -> None:
    """No name can change the filter."""
    assert escaped(value) == written


@pytest.mark.parametrize("name", ["007", "1e3", "true", "0"])
async def test_names_that_look_like_numbers(name: str) -> None:
    """A name that looks like a number is used unchanged."""
    async with directory(Person(name)) as server, asking(servers=[server.url], **SERVICE) as asked:
        assert await asked.bind(name, "hello") is R.NONE, asked.steps


async def test_one_login_is_one_bind() -> None:
    """Each login makes one bind, whether the password is right or wrong.

    The service account is bound once and used again.
    """
    async with directory(Person("ann")) as server, asking(servers=[server.url], **SERVICE) as asked:
        assert await asked.bind("ann", "hello") is R.NONE
        assert await asked.bind("ann", "wrong") is R.WRONG_PASSWORD
        assert await asked.bind("ann", "hello") is R.NONE
        assert server.binds == ["cn=service"] + ["CN=ann,OU=Staff,DC=example,DC=com"] * 3
        assert server.searches == 3


@pytest.mark.parametrize("password", ["", "\0", "\0\0", "hello\0", "hel\0lo"])
async def test_some_passwords_are_never_sent(password: str) -> None:
    """An empty password is never sent, because it would make an anonymous bind.

    A password with a NUL is never sent either, because a server may cut it there.
    """
    async with directory(Person("ann")) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", password) is R.WRONG_PASSWORD
        assert server.connections == 0


async def test_answers_in_pieces() -> None:
    """The answers to a bind and to a search may arrive one octet at a time."""
    async with directory(Person("ann")) as server, asking(servers=[server.url], **SERVICE) as asked:
        server.manner = Manner.DRIBBLES
        assert await asked.bind("ann", "hello") is R.NONE, asked.steps
        assert await asked.bind("ann", "wrong") is R.WRONG_PASSWORD


async def test_answers_are_read_in_turns() -> None:
    """If the answers of a thousand directories arrive in the same instant, a few of them are read at a time."""
    turns = CountedTurns(1)
    async with directory(Person("ann")) as server, asking(host(turns=turns), servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.NONE
    assert turns.taken >= 3  # two binds and one search


async def test_exactly_one_entry_is_needed() -> None:
    """If there is no entry, or more than one, the user is unknown and no bind is made."""
    people = (Person("ann"), Person("ann", dn="CN=other ann,DC=example,DC=com"))
    async with directory(*people) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("bob", "hello") is R.UNKNOWN_USER
        assert "no entry was found" in asked.steps
        assert await asked.bind("ann", "hello") is R.UNKNOWN_USER
        assert any(step.startswith("more than one entry was found") for step in asked.steps)
        assert set(server.binds) == {""}


async def test_the_entry_must_have_the_very_name() -> None:
    """The entry must have exactly the name that was typed.

    A directory also finds `ann` for ` ann` and `änn`, and the rules and lock-outs of `ann` would not apply to these
    names.
    """
    async with directory(Person("ann"), Person("a n")) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ANN", "hello") is R.UNKNOWN_USER  # this directory compares names with their case
        server.people[0].attributes["sAMAccountName"] = ["Ann"]
        assert await asked.bind("ann", "hello") is R.NONE
        server.people[0].attributes["sAMAccountName"] = []
        assert await asked.bind("ann", "hello") is R.UNKNOWN_USER


@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0", "\u200b", "\ufeff"])
async def test_blanks_around_a_name_in_the_directory_are_ignored(blank: str) -> None:
    """A user whose name has blanks or invisible characters around it in the directory logs in without them. A login
    with these characters is refused, because the rules of `ann` would not apply to it.
    """
    ann = Person("ann", attributes={"sAMAccountName": [f"{blank}ann{blank}"]})
    async with directory(ann) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.NONE
        assert await asked.bind(f"ann{blank}", "hello") is R.UNKNOWN_USER
    upn = Person("ann", attributes={"sAMAccountName": [], "userPrincipalName": [f"ann@corp.example{blank}"]})
    pattern = "(userPrincipalName={user}@corp.example)"
    async with directory(upn) as server, asking(servers=[server.url], userFilter=pattern) as asked:
        assert await asked.bind("ann", "hello") is R.NONE


async def test_an_entry_that_lost_a_conflict_is_no_user() -> None:
    """An entry that lost a conflict of replication is neither a second ann nor a user."""
    loser = Person("ann", "other", dn="nsuniqueid=66446001-1dd211b2-66225011-2ee211db+uid=ann,DC=example,DC=com")
    async with directory(Person("ann"), loser) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.NONE
        del server.people[0]
        assert await asked.bind("ann", "other") is R.UNKNOWN_USER


async def test_a_name_in_another_language_is_a_name() -> None:
    """A directory finds a name with a language option, as it finds any value of the attribute."""
    ann = Person("ann", attributes={"sAMAccountName": [], "uid;lang-en": ["ann"], "uid;x-old": ["bob"]})
    async with directory(ann) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.NONE


async def test_an_entry_has_one_name() -> None:
    """Each entry has one name for logins, so that ann cannot use another name to avoid a rule or lock-out for `ann`.

    The steps contain that name.
    """
    ann = Person("ann", attributes={"userPrincipalName": ["ann@corp.example"], "uid": ["annie"]})
    async with directory(ann) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.NONE
        for other in ("ann@corp.example", "annie"):
            assert await asked.bind(other, "hello") is R.UNKNOWN_USER
            assert any("log in as ann" in step for step in asked.steps), asked.steps
        assert (await asked.ldap.look_up("annie", asked.steps.append))[0] is R.UNKNOWN_USER
        ann.attributes["sAMAccountName"] = []
        assert await asked.bind("annie", "hello") is R.NONE
        assert await asked.bind("ann@corp.example", "hello") is R.UNKNOWN_USER
        ann.attributes["uid"] = []
        assert await asked.bind("ann@corp.example", "hello") is R.NONE


@pytest.mark.parametrize(
    ("pattern", "attributes", "name", "others"),
    [
        ("(userPrincipalName={user}@corp.example)", {"userPrincipalName": ["Lee@corp.example"]}, "lee", ["ann", ""]),
        ("(|(mail={user}@a.example)(mail={user}@b.example))", {"mail": ["lee@b.example"]}, "lee", ["lee@b.example"]),
        ("(mail={user})", {"mail": ["lee@a.example", "ann@a.example"]}, "lee@a.example", ["ann@a.example", "lee"]),
    ],
)
async def test_the_name_of_a_filter_of_ones_own(
    pattern: str, attributes: dict[str, list[str]], name: str, others: list[str]
) -> None:
    """If the admin sets a filter, the name of the entry is the value of the first attribute that the filter compares
    with {user}."""
    person = Person("e", dn="CN=ann lee,DC=example,DC=com", attributes=attributes)  # any name with an e
    async with directory(person) as server, asking(servers=[server.url], userFilter=pattern) as asked:
        assert await asked.bind(name, "hello") is R.NONE, asked.steps
        for other in others:
            assert await asked.bind(other, "hello") is R.UNKNOWN_USER, other


@pytest.mark.parametrize("name", ["C# dev", "a=b", "a#b/c\\;CN=root", "a\\, b"])
async def test_the_names_of_entries(name: str) -> None:
    """The bind uses each distinguished name exactly as it was found, in any form (RFC 4514 section 2.4)."""
    ann = Person("ann", dn=f"CN={name},OU=Staff,DC=example,DC=com")
    async with directory(ann) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.NONE, asked.steps
        assert server.binds[-1] == ann.dn
        assert asked.found is not None and asked.found.ous == {"staff"}


async def test_account_states() -> None:
    """The reason is the state of the account in the directory."""
    text = "80090308: LdapErr: DSID-0C090439, comment: AcceptSecurityContext error, data {}, v4563"
    people = [
        Person(f"u{data}", refusal=(49, text.format(data)))
        for data in ("52e", "532", "533", "701", "773", "775", "530")
    ]
    async with directory(*people) as server, asking(servers=[server.url]) as asked:
        reasons = [await asked.bind(person.name, "hello") for person in people]
    assert reasons == [
        R.WRONG_PASSWORD, R.PASSWORD_EXPIRED, R.ACCOUNT_DISABLED, R.ACCOUNT_EXPIRED, R.PASSWORD_MUST_CHANGE,
        R.ACCOUNT_LOCKED, R.LOGON_RESTRICTED,
    ]  # fmt: skip


async def test_an_account_that_only_an_attribute_ends() -> None:
    """The directory accepts the password of an account whose shadowExpire has passed. The login is refused."""
    people = (Person("ann", attributes={"shadowExpire": ["1"]}), Person("bob", attributes={"lockoutTime": ["1"]}))
    async with directory(*people) as server, asking(servers=[server.url], cacheSeconds=60) as asked:
        assert [await asked.bind("ann", "hello") for _ in range(2)] == [R.ACCOUNT_EXPIRED] * 2
        assert asked.found is not None and not asked.found.ous
        assert await asked.bind("bob", "hello") is R.NONE


async def test_groups_and_units_are_found() -> None:
    """After a right password the login rules get the user's groups and units. After a wrong password they get none."""
    ann = Person("ann", attributes={"memberOf": ["CN=VPN users,DC=example,DC=com"]})
    async with directory(ann) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.NONE
        assert asked.found is not None
        assert (asked.found.groups, asked.found.ous) == ({"vpn users"}, {"staff"})
        assert await asked.bind("ann", "wrong") is R.WRONG_PASSWORD
        assert not asked.found.groups and not asked.found.ous


def groups(*names: str) -> dict[str, list[str]]:
    """Return the memberships in groups with these names."""
    return {"memberOf": [f"CN={name},DC=example,DC=com" for name in names]}


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param(groups(*(f"group {number}" for number in range(2_001))), id="2,001 groups"),
        pytest.param(groups(*("x" * 200 + str(number) for number in range(1_300))), id="more than 256 KiB"),
        pytest.param(groups("vpn", "x" * 256), id="a group's name of 256 characters"),
        pytest.param(groups("vpn", "x,OU=" + "y" * 8_192), id="a group's DN of more than 8,192 octets"),
        pytest.param({"memberOf": ["no distinguished name"]}, id="no DN"),
        pytest.param({"memberOf": [], "memberOf;range=0-1499": ["CN=vpn,DC=example"]}, id="a part of the groups"),
        pytest.param({"uid": ["x" * 1_000_000]}, id="a value of 1 MB"),
        pytest.param({f"x{number}": ["y"] for number in range(300)}, id="300 attributes"),
    ],
)
async def test_a_login_is_refused_where_an_entry_exceeds_a_limit(attributes: dict[str, list[str]]) -> None:
    """If the list of groups cannot be read completely, the login is refused.

    The server can still be used for the next login.
    """
    people = (Person("ann", attributes=attributes), Person("bob"))
    async with directory(*people) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.DIRECTORY_ENTRY_TOO_LARGE, asked.steps
        assert (await asked.ldap.look_up("ann", asked.steps.append))[0] is R.DIRECTORY_ENTRY_TOO_LARGE
        assert await asked.bind("bob", "hello") is R.NONE, asked.steps
        assert people[0].dn not in server.binds


async def test_as_many_groups_as_the_limit_allows() -> None:
    """A login with 1,900 groups is decided on all of them."""
    names = [f"group {number}" for number in range(1_900)]
    async with directory(Person("ann", attributes=groups(*names))) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.NONE, asked.steps
        assert asked.found is not None and asked.found.groups == set(names)


async def test_long_values_are_no_names() -> None:
    """A value over 255 characters is not compared with the name. The next value is the name of the entry."""
    ann = Person("ann", attributes={"sAMAccountName": ["ann" + "x" * 253], "uid": ["ann" * 100, "ann"]})
    async with directory(ann) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.NONE, asked.steps


async def test_right_answers_are_remembered(clock: SetClock) -> None:
    """A right password is remembered for the configured time, and only for this name. If the wall clock is set back
    meanwhile, the time is no longer.

    A wrong password is not remembered.
    """
    seconds = 0.0
    given = host(clock, monotonic=lambda: seconds)
    async with directory(Person("ann")) as server, asking(given, servers=[server.url], cacheSeconds=60) as asked:
        await asked.bind("ann", "wrong")
        await asked.bind("ann", "wrong")
        for _ in range(3):
            assert await asked.bind("ann", "hello") is R.NONE
            assert asked.found is not None and asked.found.ous == {"staff"}
        assert len(server.binds) == 1 + 3
        assert await asked.bind("annh", "ello") is R.UNKNOWN_USER
        seconds = 60.0
        clock.pass_by(-86_400)
        assert await asked.bind("ann", "hello") is R.NONE
        assert len(server.binds) == 1 + 4


# --- from a request ---------------------------------------------------------------------------------------------


async def ask(asked: Asked, listener: FakeListener, datagram: bytes, *, takes_code: bool = False) -> tuple[Reason, str]:
    """Check a request. Return the reason, and the code that was appended to the password."""
    login = listener.login(datagram)
    login.method = Method.PAP if USER_PASSWORD in login.arrival.request.first else Method.CHAP
    login.user = login.arrival.request.first[1].decode()
    result = await asked.ldap.check(login, lambda: takes_code, asked.steps.append)
    return result.reason, result.code.text or "" if result.code is not None else ""


async def test_a_code_appended_to_the_password(listener: FakeListener) -> None:
    """If the user may append a code, it is removed before the only bind."""
    ann, bob = Person("ann"), Person("bob", "hello123456")
    async with directory(ann, bob) as server, asking(servers=[server.url]) as asked:
        assert await ask(asked, listener, pap("ann", "hello123456"), takes_code=True) == (R.NONE, "123456")
        assert await ask(asked, listener, pap("ann", "hello"), takes_code=True) == (R.NONE, "")
        assert await ask(asked, listener, pap("ann", "hello123456")) == (R.WRONG_PASSWORD, "")
        assert await ask(asked, listener, pap("bob", "hello123456")) == (R.NONE, "")
        assert await ask(asked, listener, pap("bob", "hello123456123456"), takes_code=True) == (R.NONE, "123456")
        assert await ask(asked, listener, pap("ann", "wrong123456"), takes_code=True) == (R.WRONG_PASSWORD, "")
        assert await ask(asked, listener, pap("ann", "123456"), takes_code=True) == (R.WRONG_PASSWORD, "")
        assert len(server.binds) == 1 + 7


async def test_a_code_of_eight_digits(listener: FakeListener) -> None:
    """If codeDigits is eight, eight digits are removed from the end, and six digits are part of the password."""
    people = Person("ann"), Person("bob", "hello123456")
    async with directory(*people) as server, asking(servers=[server.url], codeDigits=8) as asked:
        assert await ask(asked, listener, pap("ann", "hello12345678"), takes_code=True) == (R.NONE, "12345678")
        assert await ask(asked, listener, pap("bob", "hello123456"), takes_code=True) == (R.NONE, "")
        assert await ask(asked, listener, pap("bob", "hello12345612345678"), takes_code=True) == (R.NONE, "12345678")
        assert await ask(asked, listener, pap("ann", "hello123456"), takes_code=True) == (R.WRONG_PASSWORD, "")
        assert len(server.binds) == 1 + 4


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@pytest.mark.parametrize("password", ["pässwörd", "5 €", "it’s – ž"])  # noqa: RUF001  devices send them
async def test_passwords_in_windows_1252(listener: FakeListener, password: str, encoding: str) -> None:
    """A password that a device sends in Windows-1252 is converted to UTF-8 for the only bind, and so is a password
    before a code."""
    async with directory(Person("zoë", password)) as server, asking(servers=[server.url]) as asked:
        octets = password.encode(encoding)
        assert await ask(asked, listener, pap("zoë", octets)) == (R.NONE, "")
        assert await ask(asked, listener, pap("zoë", octets + b"123456"), takes_code=True) == (R.NONE, "123456")
        assert len(server.binds) == 1 + 2


async def test_an_octet_without_a_character(listener: FakeListener) -> None:
    """An octet that Windows-1252 does not define makes the password wrong, with one bind."""
    async with directory(Person("ann")) as server, asking(servers=[server.url]) as asked:
        assert await ask(asked, listener, pap("ann", b"hello\x81")) == (R.WRONG_PASSWORD, "")
        assert len(server.binds) == 1 + 1


async def test_a_nul_is_no_password(listener: FakeListener) -> None:
    """A password with a NUL is wrong and is not sent."""
    async with directory(Person("ann")) as server, asking(servers=[server.url]) as asked:
        for password in (b"hello\0x", b"\0", b"", b"\0\0\0x"):
            assert await ask(asked, listener, pap("ann", password)) == (R.WRONG_PASSWORD, "")
        assert server.connections == 0


async def test_a_bind_needs_the_password_itself(listener: FakeListener) -> None:
    """A CHAP request does not contain the password, so no bind can check it."""
    async with directory(Person("ann")) as server, asking(servers=[server.url]) as asked:
        assert await ask(asked, listener, chap("ann", "hello")) == (R.METHOD_UNFIT, "")
        assert server.connections == 0


async def test_a_user_of_a_certificate_is_looked_up() -> None:
    """The user of a certificate is looked up without a bind.

    The result is the state of the account and the groups of the entry.
    """
    people = (
        Person("ann", attributes={"memberOf": ["CN=staff,DC=example,DC=com"]}),
        Person("bob", attributes={"userAccountControl": ["514"]}),
    )
    async with directory(*people) as server, asking(servers=[server.url], **SERVICE) as asked:
        assert isinstance(asked.ldap, Binds)  # the protocol that EAP needs
        reason, found = await asked.ldap.look_up("ann", asked.steps.append)
        assert (reason, found.groups) == (R.NONE, {"staff"})
        assert (await asked.ldap.look_up("bob", asked.steps.append))[0] is R.ACCOUNT_DISABLED
        assert (await asked.ldap.look_up("cy", asked.steps.append))[0] is R.UNKNOWN_USER
        assert server.binds == ["cn=service"]
