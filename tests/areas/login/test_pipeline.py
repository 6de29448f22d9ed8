"""Tests of the steps of a login: the name, the first factor and the decision."""

import pytest

from sallyport.areas.domains.domain import FirstFactor, Mode
from sallyport.areas.login.identity import default_domain, split_realm
from sallyport.areas.login.login import Reason, Verdict
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.membership import Action as AssignmentAction
from sallyport.base.errors import PacketError
from sallyport.radius.attributes import SESSION_TIMEOUT, USER_NAME, USER_PASSWORD, pull_attributes, push_attribute
from tests.areas.login.conftest import FakeListener
from tests.packets import access_request, attributes, chap, mschap2, pap

R = Reason


# --- the name ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "user", "realm"),
    [
        ("ann@corp", "ann", "corp"),
        ("ann@mail@corp", "ann@mail", "corp"),
        ("CORP\\ann", "ann", "CORP"),
        ("CORP\\ann@mail", "ann@mail", "CORP"),
        ("a\\b\\c", "b\\c", "a"),
        ("@corp", "", "corp"),
        ("ann@", "ann", ""),
        ("\\ann", "ann", ""),
        ("corp\\", "", "corp"),
        ("@", "", ""),
    ],
)
def test_a_realm_is_split_off(name: str, user: str, realm: str) -> None:
    r"""A name is first split at the first backslash (REALM\user), and then at the last at sign (user@realm)."""
    assert split_realm(name) == (user, realm)


async def test_which_domain_a_name_belongs_to(listener: FakeListener) -> None:
    """A name without a realm belongs to the client's default domain.

    A name with a realm belongs to the domain with that name or realm, regardless of case. A domain that the client does
    not have is unknown, and so is a name without a user.
    """
    areas = listener.areas
    corp = areas.domain
    branch = await areas.domains.add(areas.tenant, "Branch", realms=["branch.example", "zürich"])
    other = await areas.tenancy.ensure_tenant(2, 1)
    await areas.domains.add(other, "theirs")
    for domain in (corp, branch):
        if domain != corp:
            await areas.add_user(domain, "ann", b"hello")
    narrow = await areas.client("192.0.2.2/32", domain_ids=(branch,))
    names = {
        "ann": (R.NONE, "ann", corp),
        "ANN": (R.NONE, "ANN", corp),
        "ann@corp": (R.NONE, "ann", corp),
        "ann@CORP": (R.NONE, "ann", corp),
        "CORP\\ann": (R.NONE, "ann", corp),
        "ann@branch": (R.NONE, "ann", branch),
        "BRANCH.example\\ann": (R.NONE, "ann", branch),
        "ann@ZÜRICH": (R.NONE, "ann", branch),
        "ann@theirs": (R.UNKNOWN_REALM, "ann@theirs", corp),
        "ann@nobody": (R.UNKNOWN_REALM, "ann@nobody", corp),
        "NT AUTHORITY\\ann": (R.UNKNOWN_REALM, "NT AUTHORITY\\ann", corp),
        "ann@": (R.UNKNOWN_REALM, "ann@", corp),
        "@": (R.UNKNOWN_REALM, "@", corp),
        "@corp": (R.NO_USER_NAME, "", corp),
        "branch\\": (R.NO_USER_NAME, "", branch),
        "bob": (R.UNKNOWN_USER, "bob", corp),
        " ann": (R.UNKNOWN_USER, " ann", corp),
    }
    for name, (reason, user, domain) in names.items():
        verdict = Verdict.ACCEPT if reason is R.NONE else Verdict.REJECT
        assert await listener.decided(pap(name, "hello")) == (verdict, reason, user, domain), name
    assert await listener.decided(pap("ann", "hello"), narrow) == ("accept", R.NONE, "ann", branch)
    assert await listener.decided(pap("ann@branch", "hello"), narrow) == ("accept", R.NONE, "ann", branch)
    assert await listener.decided(pap("ann@corp", "hello"), narrow) == ("reject", R.UNKNOWN_REALM, "ann@corp", branch)


async def test_accents_may_be_written_in_both_ways(listener: FakeListener) -> None:
    """An accented character may be composed or decomposed.

    Both forms are the same user, the same realm and the same rule, and events have one form.
    """
    areas = listener.areas
    await areas.add_user(areas.domain, "Zoe\u0308", b"hello")
    branch = await areas.domains.add(areas.tenant, "branch", realms=["zu\u0308rich"])
    await areas.add_user(branch, "ann", b"hello")
    for name in ("zoë", "zoe\u0308", "ZOE\u0308"):
        decided = await listener.decided(pap(name, "hello"))
        assert decided == ("accept", R.NONE, "ZOË" if name.startswith("Z") else "zoë", areas.domain)
    for realm in ("zürich", "zu\u0308rich"):
        assert await listener.decided(pap(f"ann@{realm}", "hello")) == ("accept", R.NONE, "ann", branch)
    await areas.rules.add(areas.domain, RuleFields(name="no", action="block", users=["zoe\u0308"]))
    assert await listener.decided(pap("Zoë", "hello")) == (
        "accept",
        R.NONE,
        "Zoë",
        areas.domain,
    )  # monitor mode only records
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    assert (await listener.decided(pap("Zoë", "hello")))[:2] == ("reject", R.BLOCKED)


async def test_the_default_is_the_first(listener: FakeListener) -> None:
    """The default domain is the first domain of the client.

    If the client has none, it is the first domain of its tenant. A tenant without domains has no default domain.
    """
    areas = listener.areas
    branch = await areas.domains.add(areas.tenant, "branch")
    both = await areas.client("192.0.2.2/32", domain_ids=(branch, areas.domain))
    bare = await areas.client("192.0.2.3/32", tenant=await areas.tenancy.ensure_tenant(2, 1))
    found = [default_domain(client, areas.domains.table) for client in (listener.client, both, bare)]
    assert [domain and domain.id for domain in found] == [areas.domain, branch, None]
    assert await listener.decided(pap("ann", "hello"), bare) == ("reject", R.NO_DOMAIN, "", 0)


async def test_a_request_without_a_name(listener: FakeListener) -> None:
    """A request with a missing or empty User-Name is rejected with its own reason."""
    for body in (b"", attributes(USER_NAME=b"")):
        assert await listener.decided(access_request(body)) == ("reject", R.NO_USER_NAME, "", listener.areas.domain)


async def test_the_longest_name(listener: FakeListener) -> None:
    """A name of 253 octets is accepted, with and without a realm, even if it has fewer characters than octets."""
    for name in ("x" * 253, "ü" * 126, "x" * 248):
        await listener.areas.add_user(listener.areas.domain, name, b"hello")
        assert (await listener.decided(pap(name, "hello")))[:3] == ("accept", R.NONE, name)
    assert (await listener.decided(pap("x" * 248 + "@corp", "hello")))[:3] == ("accept", R.NONE, "x" * 248)


async def test_a_name_in_any_octets(listener: FakeListener) -> None:
    """A name is decoded as UTF-8, or as Latin-1 if it is not valid UTF-8.

    A name with NUL finds no user and raises no error.
    """
    await listener.areas.add_user(listener.areas.domain, "zoë", b"hello")
    for name in ("zoë".encode(), "ZOË".encode(), "zoë".encode("latin-1")):
        assert (await listener.decided(pap(name, "hello")))[0] == "accept"
    for name in (b"ann\0", b"\0", b"\xff\xfe", b"ann\n"):
        assert (await listener.decided(pap(name, "hello")))[1] == R.UNKNOWN_USER


# --- the password -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "password",
    [
        b"p",
        b"x" * 15,
        b"x" * 16,
        b"x" * 17,
        b"x" * 127,
        b"x" * 128,
        "Zürich".encode(),
        "上海🚪".encode(),
        b"\xfc\xff",
        b" a ",
    ],
)
async def test_a_right_password(listener: FakeListener, password: bytes) -> None:
    """A right password of up to 128 octets is accepted by PAP and CHAP, whatever the octets are.

    Any other password is wrong.
    """
    await listener.areas.add_user(listener.areas.domain, "bob", password)
    for datagram in (pap("bob", password), chap("bob", password), chap("bob", password, b"c" * 32)):
        assert (await listener.decided(datagram))[:2] == ("accept", R.NONE)
    for wrong in (password[:-1], password[:-1] + b"y", password.swapcase() + b"!" * (password.swapcase() == password)):
        if len(wrong) <= 128:
            assert (await listener.decided(pap("bob", wrong)))[:2] == ("reject", R.WRONG_PASSWORD)
            assert (await listener.decided(chap("bob", wrong)))[:2] == ("reject", R.WRONG_PASSWORD)


@pytest.mark.parametrize("password", ["Straße", "5 €", "it’s", "a – b", "„ž“"])  # noqa: RUF001  devices send them
async def test_a_password_in_the_devices_encoding(listener: FakeListener, password: str) -> None:
    """A password that is stored as UTF-8 is also right in Windows-1252, by PAP and CHAP."""
    await listener.areas.add_user(listener.areas.domain, "bob", password.encode())
    for octets in (password.encode(), password.encode("cp1252")):
        for datagram in (pap("bob", octets), chap("bob", octets)):
            assert (await listener.decided(datagram))[0] == "accept"
    for wrong in (password.encode("utf-16-le"), password.encode("ascii", "replace"), password.encode("cp1252")[:-1]):
        assert (await listener.decided(pap("bob", wrong)))[0] == "reject"


async def test_a_password_that_windows_1252_lacks(listener: FakeListener) -> None:
    """A password with other characters is right in UTF-8 only."""
    await listener.areas.add_user(listener.areas.domain, "bob", "密码 €".encode())
    assert (await listener.decided(pap("bob", "密码 €".encode())))[0] == "accept"
    assert (await listener.decided(pap("bob", "密码 €".encode("cp1252", "replace"))))[0] == "reject"


async def test_an_empty_password_is_wrong(listener: FakeListener) -> None:
    """An empty password is wrong by PAP and CHAP, even for a user without a password."""
    await listener.areas.add_user(listener.areas.domain, "bob", b"x")
    await listener.areas.store.write(
        lambda tx: tx.execute("update endpoint_users set password = null where name = 'bob'")
    )
    for user in ("ann", "bob"):
        for datagram in (pap(user, ""), chap(user, "")):
            assert (await listener.decided(datagram))[:2] == ("reject", R.WRONG_PASSWORD)


@pytest.mark.parametrize("size", [0, 1, 15, 17, 129, 144, 253])
async def test_a_hidden_password_of_a_wrong_length(listener: FakeListener, size: int) -> None:
    """A User-Password whose length is not a multiple of 16 up to 128 octets makes a packet malformed.

    It gets no answer, whether or not the user is in memory.
    """
    for user in ("ann", "nobody", "ann"):
        body = push_attribute(USER_NAME, user.encode()) + push_attribute(USER_PASSWORD, b"x" * size)
        with pytest.raises(PacketError) as raised:
            await listener.decided(access_request(body))
        assert raised.value.reason == "malformed"


@pytest.mark.parametrize("value", [b"\0", b"x" * 16, b"x" * 18, b"\7" + b"x" * 16])
async def test_a_chap_password_of_a_wrong_length_or_value(listener: FakeListener, value: bytes) -> None:
    """A CHAP-Password with a wrong length or a wrong value is a wrong password."""
    assert (await listener.decided(chap("ann", "hello", value=value)))[:2] == ("reject", R.WRONG_PASSWORD)
    assert (await listener.decided(chap("nobody", "hello", value=value)))[:2] == ("reject", R.UNKNOWN_USER)


async def test_a_chap_response_belongs_to_its_challenge(listener: FakeListener) -> None:
    """A CHAP response is wrong for another challenge.

    The challenge is CHAP-Challenge if it is present, and otherwise the authenticator.
    """
    await listener.decided(chap("ann", "hello"))
    for challenge in (b"1", b"c" * 16, b"c" * 253):
        assert (await listener.decided(chap("ann", "hello", challenge)))[0] == "accept"
    replayed = chap("ann", "hello", b"c" * 16).replace(b"c" * 16, b"d" * 16)
    start = replayed.index(push_attribute(USER_NAME, b"ann"))
    assert (await listener.decided(access_request(replayed[start:])))[:2] == ("reject", R.WRONG_PASSWORD)


async def test_no_credentials(listener: FakeListener) -> None:
    """A request without a password and without EAP is rejected."""
    login = listener.login(access_request(attributes(USER_NAME=b"ann")))
    decision = await listener.decide(login)
    assert (decision.reason, login.method) == (R.NO_CREDENTIALS, "none")


async def test_the_method_is_noted(listener: FakeListener) -> None:
    """The method is pap or chap, even if the user is unknown."""
    for user in ("ann", "nobody"):
        for datagram, method in ((pap(user, "x"), "pap"), (chap(user, "x"), "chap")):
            login = listener.login(datagram)
            await listener.decide(login)
            assert login.method == method


# --- the domain's factor and mode ---------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [FirstFactor.LDAP, FirstFactor.RADIUS])
async def test_an_unavailable_first_factor_rejects(listener: FakeListener, factor: FirstFactor) -> None:
    """If the domain's first factor is unavailable, a right local password is rejected in both modes."""
    for mode in Mode:
        domain = await listener.areas.domains.add(listener.areas.tenant, f"d-{mode}", first_factor=factor, mode=mode)
        await listener.areas.add_user(domain, "ann", b"hello")
        decided = await listener.decided(pap(f"ann@d-{mode}", "hello"))
        assert decided == ("reject", R.FIRST_FACTOR_UNAVAILABLE, "ann", domain)


@pytest.mark.parametrize("name", [" ann", "ann  ", "ann @corp", "CORP\\ ann", " host/pc1", "PC1$ "])
async def test_spaces_around_a_name_avoid_no_rule(listener: FakeListener, name: str) -> None:
    """Spaces around a name do not avoid a rule, because the server that checked the password finds ann by that name."""
    areas = listener.areas
    vouching = await areas.client("192.0.2.9/32", password_verified=True)
    await areas.first_settings.set(areas.domains.table.by_id[areas.domain], FirstFactor.NONE, {})
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    await areas.rules.add(areas.domain, RuleFields(name="no", action="block", users=["ann"]))
    await areas.rules.add(areas.domain, RuleFields(name="computers", action="block", kinds=["machine"]))
    assert (await listener.decided(pap(name, "x"), vouching))[:2] == ("reject", R.BLOCKED)


async def test_a_client_with_password_verified_vouches_for_passwords(listener: FakeListener) -> None:
    """If the domain has no first factor, a password counts as checked only in a signed request of a client with
    passwordVerified. This applies to any user name and password. Other requests are rejected in both modes."""
    areas = listener.areas
    vouching = await areas.client("192.0.2.9/32", password_verified=True)
    for mode in Mode:
        name = f"d-{mode}"
        domain = await areas.domains.add(areas.tenant, name, first_factor=FirstFactor.NONE, mode=mode)
        await areas.add_user(domain, "ann", b"hello")
        user = f"ann@{name}"
        assert await listener.decided(pap(user, "hello")) == ("reject", R.MAY_NOT_VOUCH, "ann", domain)
        unsigned = await listener.decided(pap(user, "hello", signed=False), vouching)
        assert unsigned == ("reject", R.VOUCHES_UNSIGNED, "ann", domain)
        vouched = ("accept", R.NONE) if mode is Mode.MONITOR else ("reject", R.NO_PROVIDER)
        assert await listener.decided(pap(user, "whatever"), vouching) == (*vouched, "ann", domain)


async def test_a_user_in_memory_needs_no_wait(listener: FakeListener) -> None:
    """The first login loads the user, and the next login is decided at once. This also applies to an unknown name."""
    for name in ("ann", "nobody"):
        assert listener.areas.pipeline.begin(listener.login(pap(name, "hello"))) is None
        await listener.decided(pap(name, "hello"))
        assert listener.areas.pipeline.begin(listener.login(pap(name, "hello"))) is not None
    for name in ("ann@nobody", "", "@corp"):
        assert listener.areas.pipeline.begin(listener.login(pap(name, "hello"))) is not None


async def test_a_mode_holds_for_a_login_that_waits(listener: FakeListener) -> None:
    """A login that has to read the store is decided by the mode that is set when the result arrives."""
    login = listener.login(pap("ann", "hello"))
    assert listener.areas.pipeline.begin(login) is None
    await listener.areas.domains.set_mode([listener.areas.domain], Mode.ENFORCE)
    decision = await listener.areas.pipeline.check(login)
    assert decision is not None
    assert (decision.mode, decision.would_have_been) == ("enforce", "")


async def test_a_changed_password_holds_for_the_next_login(listener: FakeListener) -> None:
    """If a user is removed and added again, the new password is valid at once."""
    assert (await listener.decided(pap("ann", "hello")))[0] == "accept"
    await listener.areas.remove_user(listener.areas.domain, "ann")
    assert (await listener.decided(pap("ann", "hello")))[1] == R.UNKNOWN_USER
    await listener.areas.add_user(listener.areas.domain, "ann", b"another")
    assert (await listener.decided(pap("ann", "another")))[0] == "accept"
    assert (await listener.decided(pap("ann", "hello")))[1] == R.WRONG_PASSWORD


# --- groups -------------------------------------------------------------------------------------------------------


async def test_the_groups_of_a_user_feed_the_rules(listener: FakeListener) -> None:
    """A rule for a group, in any case, applies to its members while the group is active, for every kind of login."""
    areas = listener.areas
    rule = RuleFields.model_validate({"name": "staff", "action": "block", "groups": ["STAFF"], "priority": 1})
    await areas.rules.add(areas.domain, rule)
    ann = await areas.users.load(areas.domain, "ann")
    assert ann is not None
    group = await areas.groups.add(areas.domain, Group("Staff"))
    logins = [(kind, kind("ann", "hello")) for kind in (pap, chap, mschap2)]
    for member, status, blocked in ((False, "Active", False), (True, "Active", True), (True, "Off", False)):
        await areas.groups.assign_users(
            areas.domain, group, [ann.id], AssignmentAction.ADD if member else AssignmentAction.REMOVE
        )
        await areas.groups.edit(areas.domain, group, {"status": status})
        for kind, datagram in logins:
            decision = await listener.decide(listener.login(datagram))
            assert (decision.reason is R.BLOCKED) is blocked, (kind, member, status)


async def test_the_credential_policy_of_a_group_bounds_sessions(listener: FakeListener) -> None:
    """The Accept has a Session-Timeout with the shortest time to live of the user's active groups (RFC 2865 section
    5.27), unless a login rule sets the attribute."""
    areas = listener.areas
    ann = await areas.users.load(areas.domain, "ann")
    assert ann is not None

    async def timeout() -> bytes | None:
        login = listener.login(pap("ann", "hello"))
        await listener.decide(login)
        return dict(pull_attributes(login.attributes)).get(SESSION_TIMEOUT)

    for name, ttl in (("Staff", "8h"), ("Guests", "600"), ("Others", "")):
        group = await areas.groups.add(areas.domain, Group(name))
        await areas.groups.assign_users(areas.domain, group, [ann.id], AssignmentAction.ADD)
        await areas.groups.set_credential_policy(areas.domain, group, {"ttl_user": ttl})
        assert await timeout() == {"Staff": 8 * 3600, "Guests": 600, "Others": 600}[name].to_bytes(4)
        if name == "Guests":
            guests = group
    reply = [{"name": "Session-Timeout", "value": 60}]
    chosen = {"name": "r", "action": "block", "everyone": True, "replyAttributes": reply}
    await areas.rules.add(areas.domain, RuleFields.model_validate(chosen))
    assert await timeout() == (60).to_bytes(4)
    rule = areas.rules.all_of(areas.domain)[0].id
    await areas.rules.delete(areas.domain, [rule])
    await areas.groups.delete_credential_policy(areas.domain, guests, None)
    assert await timeout() == (8 * 3600).to_bytes(4)
