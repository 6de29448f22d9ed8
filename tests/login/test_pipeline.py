"""The steps of a login: who it is, whether the password is right, what is decided."""

import pytest

from sallyport.base.errors import PacketError
from sallyport.domains.model import FirstFactor, Mode
from sallyport.login.model import Reason, Verdict
from sallyport.login.pipeline import decide, default_domain, split_realm
from sallyport.radius.attributes import USER_NAME, USER_PASSWORD, push_attribute
from tests.login.conftest import Desk
from tests.packets import access_request, attributes, chap, pap

R = Reason


# --- the decision -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", list(Reason))
def test_the_modes_differ_in_the_note_alone(reason: Reason) -> None:
    """Monitor and enforce decide and apply the same; monitor notes the verdict as what would have been."""
    monitor, enforce = decide(reason, Mode.MONITOR), decide(reason, Mode.ENFORCE)
    verdict = Verdict.ACCEPT if reason is Reason.NONE else Verdict.REJECT
    for decision in (monitor, enforce):
        assert (decision.decision, decision.applied, decision.reason) == (verdict, verdict, reason)
        assert decision.passed is (reason is Reason.NONE)
    assert (monitor.would_have_been, enforce.would_have_been) == (verdict, "")
    assert (monitor.mode, enforce.mode) == ("monitor", "enforce")
    assert monitor.row == (verdict.value, verdict.value, verdict.value, reason.value)


def test_decisions_are_few() -> None:
    """The same checks in the same mode are the same object, so that it can be a key."""
    assert decide(Reason.NONE, Mode.ENFORCE) is decide(Reason.NONE, Mode.ENFORCE)
    assert len({decide(reason, mode) for reason in Reason for mode in Mode}) == len(Reason) * len(Mode)


# --- who --------------------------------------------------------------------------------------------------------


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
    r"""REALM\user at the first backslash, user@realm at the last at sign; a backslash comes first."""
    assert split_realm(name) == (user, realm)


async def test_which_domain_a_name_belongs_to(desk: Desk) -> None:
    """Without a realm the client's default; with one the domain of that name or realm in any case, which is taken off
    the name; one that is none of the client's domains is unknown, and so is a name that is all realm."""
    areas = desk.areas
    corp = areas.domain
    branch = await areas.domains.add(areas.tenant, "Branch", realms=["branch.example", "zürich"])
    other = await areas.tenancy.ensure_tenant(2, 1)
    await areas.domains.add(other, "theirs")
    for domain in (corp, branch):
        if domain != corp:
            await areas.users.add(domain, "ann", b"hello")
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
        assert await desk.decided(pap(name, "hello")) == (verdict, reason, user, domain), name
    assert await desk.decided(pap("ann", "hello"), narrow) == ("accept", R.NONE, "ann", branch)
    assert await desk.decided(pap("ann@branch", "hello"), narrow) == ("accept", R.NONE, "ann", branch)
    assert await desk.decided(pap("ann@corp", "hello"), narrow) == ("reject", R.UNKNOWN_REALM, "ann@corp", branch)


async def test_the_default_is_the_first(desk: Desk) -> None:
    """Of the client's domains in their order, or of its tenant's; a tenant without domains has none."""
    areas = desk.areas
    branch = await areas.domains.add(areas.tenant, "branch")
    both = await areas.client("192.0.2.2/32", domain_ids=(branch, areas.domain))
    bare = await areas.client("192.0.2.3/32", tenant=await areas.tenancy.ensure_tenant(2, 1))
    found = [default_domain(client, areas.domains.table) for client in (desk.client, both, bare)]
    assert [domain and domain.id for domain in found] == [areas.domain, branch, None]
    assert await desk.decided(pap("ann", "hello"), bare) == ("reject", R.NO_DOMAIN, "", 0)


async def test_a_request_without_a_name(desk: Desk) -> None:
    """A User-Name that is missing or empty is a reject that says so."""
    for body in (b"", attributes(USER_NAME=b"")):
        assert await desk.decided(access_request(body)) == ("reject", R.NO_USER_NAME, "", desk.areas.domain)


async def test_the_longest_name(desk: Desk) -> None:
    """253 octets, also where they are more octets than characters, with and without a realm."""
    for name in ("x" * 253, "ü" * 126, "x" * 248):
        await desk.areas.users.add(desk.areas.domain, name, b"hello")
        assert (await desk.decided(pap(name, "hello")))[:3] == ("accept", R.NONE, name)
    assert (await desk.decided(pap("x" * 248 + "@corp", "hello")))[:3] == ("accept", R.NONE, "x" * 248)


async def test_a_name_in_any_octets(desk: Desk) -> None:
    """UTF-8, else Latin-1; NUL finds nobody and no error."""
    await desk.areas.users.add(desk.areas.domain, "zoë", b"hello")
    for name in ("zoë".encode(), "ZOË".encode(), "zoë".encode("latin-1")):
        assert (await desk.decided(pap(name, "hello")))[0] == "accept"
    for name in (b"ann\0", b"\0", b"\xff\xfe", b"ann\n"):
        assert (await desk.decided(pap(name, "hello")))[1] == R.UNKNOWN_USER


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
async def test_a_right_password(desk: Desk, password: bytes) -> None:
    """Any octets of any length up to 128, by PAP and by CHAP; another one is wrong."""
    await desk.areas.users.add(desk.areas.domain, "bob", password)
    for datagram in (pap("bob", password), chap("bob", password), chap("bob", password, b"c" * 32)):
        assert (await desk.decided(datagram))[:2] == ("accept", R.NONE)
    for wrong in (password[:-1], password[:-1] + b"y", password.swapcase() + b"!" * (password.swapcase() == password)):
        if len(wrong) <= 128:
            assert (await desk.decided(pap("bob", wrong)))[:2] == ("reject", R.WRONG_PASSWORD)
            assert (await desk.decided(chap("bob", wrong)))[:2] == ("reject", R.WRONG_PASSWORD)


async def test_a_password_in_the_devices_encoding(desk: Desk) -> None:
    """A password kept as UTF-8 is right in Latin-1 as well, by PAP and CHAP."""
    await desk.areas.users.add(desk.areas.domain, "bob", "Straße".encode())
    for octets in ("Straße".encode(), "Straße".encode("latin-1")):
        for datagram in (pap("bob", octets), chap("bob", octets)):
            assert (await desk.decided(datagram))[0] == "accept"
    assert (await desk.decided(pap("bob", b"Strasse")))[0] == "reject"


async def test_an_empty_password_is_wrong(desk: Desk) -> None:
    """Also for a user who has none, by PAP and CHAP."""
    await desk.areas.users.add(desk.areas.domain, "bob", b"x")
    await desk.areas.store.write(lambda tx: tx.execute("update endpoint_users set password = null where name = 'bob'"))
    for user in ("ann", "bob"):
        for datagram in (pap(user, ""), chap(user, "")):
            assert (await desk.decided(datagram))[:2] == ("reject", R.WRONG_PASSWORD)


@pytest.mark.parametrize("size", [0, 1, 15, 17, 129, 144, 253])
async def test_a_hidden_password_of_a_wrong_length(desk: Desk, size: int) -> None:
    """A User-Password that is no multiple of 16 up to 128 octets is a malformed packet: no answer, for a user in
    memory or not."""
    for user in ("ann", "nobody", "ann"):
        body = push_attribute(USER_NAME, user.encode()) + push_attribute(USER_PASSWORD, b"x" * size)
        with pytest.raises(PacketError) as raised:
            await desk.decided(access_request(body))
        assert raised.value.reason == "malformed"


@pytest.mark.parametrize("value", [b"\0", b"x" * 16, b"x" * 18, b"\7" + b"x" * 16])
async def test_a_chap_password_of_a_wrong_length_or_value(desk: Desk, value: bytes) -> None:
    """Whatever it holds is a wrong password, of any length."""
    assert (await desk.decided(chap("ann", "hello", value=value)))[:2] == ("reject", R.WRONG_PASSWORD)
    assert (await desk.decided(chap("nobody", "hello", value=value)))[:2] == ("reject", R.UNKNOWN_USER)


async def test_a_chap_response_belongs_to_its_challenge(desk: Desk) -> None:
    """The response to one challenge is wrong under another: CHAP-Challenge counts where it is, not the
    authenticator."""
    await desk.decided(chap("ann", "hello"))
    for challenge in (b"1", b"c" * 16, b"c" * 253):
        assert (await desk.decided(chap("ann", "hello", challenge)))[0] == "accept"
    replayed = chap("ann", "hello", b"c" * 16).replace(b"c" * 16, b"d" * 16)
    start = replayed.index(push_attribute(USER_NAME, b"ann"))
    assert (await desk.decided(access_request(replayed[start:])))[:2] == ("reject", R.WRONG_PASSWORD)


async def test_no_credentials(desk: Desk) -> None:
    """A request with neither password nor EAP, and EAP, which the local factor does not check yet, are rejects."""
    for body, method in ((b"", "none"), (attributes(EAP_MESSAGE=b"\2\1\0\5\1"), "eap")):
        login = desk.login(access_request(attributes(USER_NAME=b"ann") + body))
        decision = await desk.decide(login)
        assert (decision.reason, login.method) == (R.NO_CREDENTIALS, method)


async def test_the_method_is_noted(desk: Desk) -> None:
    """pap and chap, also for a user who is not there."""
    for user in ("ann", "nobody"):
        for datagram, method in ((pap(user, "x"), "pap"), (chap(user, "x"), "chap")):
            login = desk.login(datagram)
            await desk.decide(login)
            assert login.method == method


# --- the domain's factor and mode ---------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [FirstFactor.LDAP, FirstFactor.RADIUS, FirstFactor.NONE])
async def test_a_factor_that_is_not_there_lets_nobody_in(desk: Desk, factor: FirstFactor) -> None:
    """Whoever has the right local password, in either mode."""
    for mode in Mode:
        domain = await desk.areas.domains.add(desk.areas.tenant, f"d-{mode}", first_factor=factor, mode=mode)
        await desk.areas.users.add(domain, "ann", b"hello")
        decided = await desk.decided(pap(f"ann@d-{mode}", "hello"))
        assert decided == ("reject", R.FIRST_FACTOR_UNAVAILABLE, "ann", domain)


async def test_a_user_in_memory_needs_no_wait(desk: Desk) -> None:
    """The first login loads the user, the next is decided at once, also for a name that nobody has."""
    for name in ("ann", "nobody"):
        assert desk.areas.pipeline.begin(desk.login(pap(name, "hello"))) is None
        await desk.decided(pap(name, "hello"))
        assert desk.areas.pipeline.begin(desk.login(pap(name, "hello"))) is not None
    for name in ("ann@nobody", "", "@corp"):
        assert desk.areas.pipeline.begin(desk.login(pap(name, "hello"))) is not None


async def test_a_mode_holds_for_a_login_that_waits(desk: Desk) -> None:
    """A login that asks the store is decided by the mode that holds when it has the answer."""
    login = desk.login(pap("ann", "hello"))
    assert desk.areas.pipeline.begin(login) is None
    await desk.areas.domains.set_mode([desk.areas.domain], Mode.ENFORCE)
    decision = await desk.areas.pipeline.finish(login)
    assert (decision.mode, decision.would_have_been) == ("enforce", "")


async def test_a_changed_password_holds_for_the_next_login(desk: Desk) -> None:
    """A user who is removed and added anew has the new password at once, and not the old one."""
    assert (await desk.decided(pap("ann", "hello")))[0] == "accept"
    await desk.areas.users.remove(desk.areas.domain, "ann")
    assert (await desk.decided(pap("ann", "hello")))[1] == R.UNKNOWN_USER
    await desk.areas.users.add(desk.areas.domain, "ann", b"another")
    assert (await desk.decided(pap("ann", "another")))[0] == "accept"
    assert (await desk.decided(pap("ann", "hello")))[1] == R.WRONG_PASSWORD
