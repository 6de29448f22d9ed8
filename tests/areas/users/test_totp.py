"""Tests of seeds for one-time passwords: enrolment, first codes, links, and time steps that are valid once."""

import base64
from urllib.parse import parse_qs, unquote, urlsplit

import pyotp
import pytest
import trio

from sallyport.areas.users.accounts.account import UserQuery
from sallyport.areas.users.service import EndpointUsers, Missing
from sallyport.areas.users.totp import LIFE_S, MAX_WRONG_CODES, OneTimeSeeds
from sallyport.areas.users.user import Enrolment, User
from sallyport.base.clock import SECOND
from sallyport.base.errors import Invalid, NotFound, SecretError
from sallyport.base.secret import Secret
from sallyport.base.totp import STEP_S, matching_step, otpauth
from sallyport.store.vault import Vault
from tests.areas import Areas, stored

RFC_SEED = base64.b32encode(b"12345678901234567890").decode()
RFC_6238 = [
    (59, "94287082"),
    (1111111109, "07081804"),
    (1111111111, "14050471"),
    (1234567890, "89005924"),
    (2000000000, "69279037"),
    (20000000000, "65353130"),
]


def code(seed: str, areas: Areas, *, steps: int = 0) -> str:
    """Return the code that an app shows, `steps` steps from now."""
    return pyotp.TOTP(seed).at(areas.clock() // SECOND + steps * STEP_S)


def wrong(seed: str, areas: Areas) -> str:
    """Return six digits that are not the code of a nearby time step."""
    near = {code(seed, areas, steps=steps) for steps in range(-3, 4)}
    return next(f"{number:06}" for number in range(10) if f"{number:06}" not in near)


def step(areas: Areas) -> int:
    """Return the current time step."""
    return areas.clock() // SECOND // STEP_S


async def add_ann(areas: Areas) -> int:
    """Add the user ann of corp and return her id."""
    return await areas.add_user(areas.domain, "Ann", b"hello")


async def enrolled(areas: Areas, name: str = "ann", domain: int = 0) -> str:
    """Enrol and confirm a seed for an existing user and return the seed."""
    domain = domain or areas.domain
    made, _ = await areas.seeds.enrol(domain, name)
    assert (await areas.seeds.confirm(domain, name, code(made.seed, areas))).right
    return made.seed


async def has_totp(areas: Areas) -> bool:
    """Return whether the login path sees a seed of ann."""
    user = areas.users.cached(areas.domain, "ann")
    if user is Missing.MISSING:
        user = await areas.users.load(areas.domain, "ann")
    assert isinstance(user, User)
    return user.has_totp


@pytest.mark.parametrize(("at", "vector"), RFC_6238)
def test_the_vectors_of_rfc_6238(at: int, vector: str) -> None:
    """The SHA-1 vectors of RFC 6238, appendix B, match in their last six digits.

    A code is valid one time step early or late, but not two.
    """
    now = at // STEP_S
    for away in range(-min(2, now), 3):
        moment = (at + away * STEP_S) * SECOND
        assert matching_step(RFC_SEED, vector[-6:], moment) == (now if abs(away) < 2 else None)


async def test_a_seed_counts_after_its_first_code(areas: Areas) -> None:
    """A seed is valid as soon as its first code confirms it, and the login path sees it at once.

    The confirming code cannot be used again.
    """
    user_id = await add_ann(areas)
    made, _ = await areas.seeds.enrol(areas.domain, user_id)
    assert (made.user.id, made.user.name, made.tries_left) == (user_id, "Ann", MAX_WRONG_CODES)
    assert await areas.seeds.seed(areas.domain, "ann") is None
    assert not await has_totp(areas)
    assert (await areas.seeds.confirm(areas.domain, user_id, code(made.seed, areas))).right
    assert areas.users.cached(areas.domain, "ann") is Missing.MISSING
    assert await has_totp(areas)
    assert await areas.seeds.seed(areas.domain, "ANN") == made.seed
    assert not await areas.seeds.spend(areas.domain, "ann", step(areas))
    assert await areas.seeds.spend(areas.domain, "ann", step(areas) + 1)
    with pytest.raises(NotFound):
        await areas.seeds.confirm(areas.domain, user_id, code(made.seed, areas, steps=1))


@pytest.mark.parametrize(("steps", "right"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
async def test_the_first_code_may_be_a_step_off(areas: Areas, steps: int, right: bool) -> None:
    """The first code may be one time step early or late, and may contain a blank, as apps show it. The time step of the
    code is then used up."""
    await add_ann(areas)
    made, _ = await areas.seeds.enrol(areas.domain, "ann")
    shown = code(made.seed, areas, steps=steps)
    assert (await areas.seeds.confirm(areas.domain, "ann", f" {shown[:3]} {shown[3:]}")).right is right
    if right:
        assert not await areas.seeds.spend(areas.domain, "ann", step(areas) + steps)
        assert await areas.seeds.spend(areas.domain, "ann", step(areas) + steps + 1)


async def test_the_old_seed_stays_until_the_new_one_counts(areas: Areas) -> None:
    """During a pending enrolment the old seed stays valid.

    The first right code replaces the old seed at once. A new enrolment replaces the pending one.
    """
    await add_ann(areas)
    old = await enrolled(areas)
    first, first_link = await areas.seeds.enrol(areas.domain, "ann")
    assert await areas.seeds.seed(areas.domain, "ann") == old
    assert await areas.seeds.spend(areas.domain, "ann", step(areas) + 1)
    second, _ = await areas.seeds.enrol(areas.domain, "ann")
    assert await areas.seeds.behind(first_link) is None
    assert not (await areas.seeds.confirm(areas.domain, "ann", code(first.seed, areas))).right
    assert (await areas.seeds.confirm(areas.domain, "ann", code(second.seed, areas))).right
    assert await areas.seeds.seed(areas.domain, "ann") == second.seed


@pytest.mark.parametrize(
    "malformed",
    ["", "12345", "1234567", "12345x", "١٢٣٤٥٦", "-12345", "9" * 10_000],
    ids=["empty", "five digits", "seven digits", "a letter", "arabic digits", "a sign", "very long"],
)
async def test_a_malformed_code_is_not_counted(areas: Areas, malformed: str) -> None:
    """A code that does not have six digits is refused and does not count as an attempt."""
    await add_ann(areas)
    _, link = await areas.seeds.enrol(areas.domain, "ann")
    with pytest.raises(Invalid):
        await areas.seeds.confirm(areas.domain, "ann", malformed)
    waiting = await areas.seeds.behind(link)
    assert waiting is not None and waiting.tries_left == MAX_WRONG_CODES


@pytest.mark.parametrize("separator", [" ", "-", "\u00a0"])
async def test_a_first_code_is_typed_as_apps_show_it(areas: Areas, separator: str) -> None:
    """A separator between the groups of the code does not matter."""
    await add_ann(areas)
    started, _ = await areas.seeds.enrol(areas.domain, "ann")
    right = code(started.seed, areas)
    assert (await areas.seeds.confirm(areas.domain, "ann", right[:3] + separator + right[3:])).right


async def test_five_wrong_codes_end_an_enrolment(areas: Areas) -> None:
    """After five wrong codes even the right code is refused, and the old seed stays valid."""
    await add_ann(areas)
    old = await enrolled(areas)
    made, link = await areas.seeds.enrol(areas.domain, "ann")
    left = [(await areas.seeds.confirm(areas.domain, "ann", wrong(made.seed, areas))).tries_left for _ in range(3)]
    waiting = await areas.seeds.behind(link)
    assert waiting is not None
    left += [waiting.tries_left]
    left += [(await areas.seeds.confirm_link(link, wrong(made.seed, areas))).tries_left for _ in range(2)]
    assert left == [4, 3, 2, 2, 1, 0]
    with pytest.raises(NotFound):
        await areas.seeds.confirm(areas.domain, "ann", code(made.seed, areas))
    with pytest.raises(NotFound):
        await areas.seeds.confirm_link(link, code(made.seed, areas))
    assert await areas.seeds.seed(areas.domain, "ann") == old


async def test_concurrent_confirmations(areas: Areas) -> None:
    """If several confirmations arrive at the same time, one of them succeeds and the others find no enrolment.

    Each concurrent wrong code counts as one attempt.
    """
    await add_ann(areas)
    made, link = await areas.seeds.enrol(areas.domain, "ann")
    results: list[object] = []

    async def confirm(by_link: bool, digits: str) -> None:
        try:
            how = (
                areas.seeds.confirm_link(link, digits) if by_link else areas.seeds.confirm(areas.domain, "ann", digits)
            )
            results.append((await how).right)
        except NotFound:
            results.append(None)

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(confirm, number % 2 == 0, code(made.seed, areas))
    assert sorted(results, key=str) == [None] * 7 + [True]
    results.clear()
    made, link = await areas.seeds.enrol(areas.domain, "ann")
    async with trio.open_nursery() as nursery:
        for number in range(12):
            nursery.start_soon(confirm, number % 2 == 0, wrong(made.seed, areas))
    assert (results.count(False), results.count(None)) == (MAX_WRONG_CODES, 12 - MAX_WRONG_CODES)


async def test_a_step_is_spent_once(areas: Areas) -> None:
    """A time step is accepted only once, even in concurrent requests, and never after a later step.

    For a user without a seed and for an unknown user, no step is accepted.
    """
    await add_ann(areas)
    await areas.add_user(areas.domain, "bob", b"hello")
    await enrolled(areas)
    spent: list[bool] = []

    async def spend() -> None:
        spent.append(await areas.seeds.spend(areas.domain, "ann", step(areas) + 5))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(spend)
    assert sorted(spent) == [False] * 19 + [True]
    assert not await areas.seeds.spend(areas.domain, "ann", step(areas) + 4)
    assert await areas.seeds.spend(areas.domain, "Ann", step(areas) + 6)
    for name in ("bob", "nobody"):
        assert not await areas.seeds.spend(areas.domain, name, step(areas) + 9)


async def test_a_replaced_seed_is_not_spent(areas: Areas) -> None:
    """A code is not accepted if it was checked with a seed that has been replaced or removed, or with the seed of a
    former user of the same name. The new seed's code of that time step stays valid."""
    await add_ann(areas)
    await enrolled(areas)
    await areas.seeds.seed(areas.domain, "ann")
    new = await enrolled(areas)
    assert not await areas.seeds.spend(areas.domain, "ann", step(areas) + 1)
    assert await areas.seeds.seed(areas.domain, "ann") == new
    assert await areas.seeds.spend(areas.domain, "ann", step(areas) + 1)
    await areas.seeds.remove(areas.domain, "ann")
    assert not await areas.seeds.spend(areas.domain, "ann", step(areas) + 2)
    await enrolled(areas)
    await areas.seeds.seed(areas.domain, "ann")
    await areas.remove_user(areas.domain, "ann")
    await add_ann(areas)
    await enrolled(areas)
    assert not await areas.seeds.spend(areas.domain, "ann", step(areas) + 2)


async def test_a_removed_seed_is_gone_at_once(areas: Areas) -> None:
    """A removal ends the seed and a pending enrolment at once.

    A second removal returns False, and a removal for an unknown user raises NotFound.
    """
    await add_ann(areas)
    await enrolled(areas)
    _, link = await areas.seeds.enrol(areas.domain, "ann")
    assert await has_totp(areas)
    assert await areas.seeds.remove(areas.domain, "ANN")
    assert areas.users.cached(areas.domain, "ann") is Missing.MISSING
    assert not await has_totp(areas)
    assert await areas.seeds.seed(areas.domain, "ann") is None
    assert await areas.seeds.behind(link) is None
    assert not await areas.seeds.remove(areas.domain, "ann")
    with pytest.raises(NotFound):
        await areas.seeds.remove(areas.domain, "nobody")


async def test_the_seed_of_a_deleted_user(areas: Areas) -> None:
    """If a user is deleted, its seed, enrolment and link are deleted too. A new user of that name has none of them."""
    await add_ann(areas)
    await enrolled(areas)
    _, link = await areas.seeds.enrol(areas.domain, "ann")
    await areas.remove_user(areas.domain, "ann")
    assert await areas.seeds.behind(link) is None
    assert await areas.store.read(lambda tx: tx.value(int, "select count(*) from totp_enrolments")) == 0
    await add_ann(areas)
    assert await areas.seeds.seed(areas.domain, "ann") is None
    with pytest.raises(NotFound):
        await areas.seeds.confirm(areas.domain, "ann", "000000")


async def test_a_link_is_valid_for_an_hour_and_opens_one_enrolment(areas: Areas) -> None:
    """A link shows its enrolment any number of times. It expires after an hour, or when the enrolment is confirmed."""
    await add_ann(areas)
    made, link = await areas.seeds.enrol(areas.domain, "ann")
    other_made, other_link = await areas.seeds.enrol(areas.domain, await areas.add_user(areas.domain, "bob", b"x"))
    assert len(base64.urlsafe_b64decode(link + "=")) == 32
    for _ in range(3):
        assert await areas.seeds.behind(link) == made
    assert (await areas.seeds.confirm_link(link, code(made.seed, areas))).right
    assert await areas.seeds.behind(link) is None
    areas.clock.pass_by(LIFE_S - 1)
    assert isinstance(await areas.seeds.behind(other_link), Enrolment)
    areas.clock.pass_by(1)
    assert await areas.seeds.behind(other_link) is None
    for how in (
        areas.seeds.confirm_link(other_link, code(other_made.seed, areas)),
        areas.seeds.confirm(areas.domain, "bob", code(other_made.seed, areas)),
    ):
        with pytest.raises(NotFound):
            await how
    await areas.seeds.enrol(areas.domain, "ann")
    assert await areas.store.read(lambda tx: tx.value(int, "select count(*) from totp_enrolments")) == 1


async def test_users_of_other_domains(areas: Areas) -> None:
    """A caller of one domain cannot access a user of another domain, neither by id nor by name."""
    branch = await areas.domains.add(areas.tenant, "branch")
    user_id = await add_ann(areas)
    for which in (user_id, "ann", 0, -1, 10**15, ""):
        for how in (areas.seeds.enrol(branch, which), areas.seeds.confirm(branch, which, "000000")):
            with pytest.raises(NotFound):
                await how
    await enrolled(areas)
    assert await areas.seeds.seed(branch, "ann") is None
    assert not await areas.seeds.spend(branch, "ann", step(areas) + 1)


async def test_the_store_holds_no_seed_and_no_link(areas: Areas) -> None:
    """No file contains a seed or a link in plain text.

    A seed is sealed to the row of its user, so that another row or another key raises SecretError.
    """
    await add_ann(areas)
    bob = await areas.add_user(areas.domain, "bob", b"hello")
    seed = await enrolled(areas)
    waiting, link = await areas.seeds.enrol(areas.domain, "ann")
    for secret in (seed, waiting.seed, link):
        octets = (secret.encode(), base64.b32decode(secret) if secret != link else base64.urlsafe_b64decode(link + "="))
        kept = stored(areas.store)
        assert not [each for each in octets if each in kept]
    other = Vault(Secret(b"1" * 32))
    users = EndpointUsers(areas.store, other, areas.clock)
    with pytest.raises(SecretError):
        await OneTimeSeeds(areas.store, other, users, lambda _: "corp", areas.clock).seed(areas.domain, "ann")
    await areas.store.write(
        lambda tx: tx.execute(
            "update endpoint_users set motp = (select motp from endpoint_users where motp is not null) where id = :id",
            id=bob,
        )
    )
    with pytest.raises(SecretError):
        await areas.seeds.seed(areas.domain, "bob")


async def test_the_list_of_users_marks_a_confirmed_seed(areas: Areas) -> None:
    """The list of users marks a user with a confirmed seed."""
    await add_ann(areas)
    await areas.add_user(areas.domain, "bob", b"hello")
    await areas.seeds.enrol(areas.domain, "bob")
    await enrolled(areas)
    listed, _ = await areas.accounts.page(UserQuery(areas.domain))
    assert [(each.name, each.has_totp) for each in listed] == [("Ann", 1), ("bob", 0)]


@pytest.mark.parametrize(
    ("issuer", "account"),
    [
        ("corp", "ann"),
        ("a: b/c?d&e=f", "x@y:z#%"),
        ("<b>corp</b>", '"ann"'),
        ("Zürich", "Zoë Ü"),
        ("上" * 99, "海" * 84),
    ],
)
def test_the_uri_of_an_app(issuer: str, account: str) -> None:
    """The URI contains issuer and account unchanged, except that they are cut to the length that a QR code can hold.
    pyotp reads the same values."""
    uri = otpauth(RFC_SEED, issuer=issuer, account=account)
    parts, fields = urlsplit(uri), parse_qs(urlsplit(uri).query)
    label = [unquote(part) for part in parts.path.removeprefix("/").split(":")]
    assert (parts.scheme, parts.netloc, fields["secret"]) == ("otpauth", "totp", [RFC_SEED])
    assert issuer.startswith(label[0]) and account.startswith(label[1]) and label[0] == fields["issuer"][0]
    assert uri.isascii() and len(uri) < 1200
    if len(issuer) < 50:
        assert label == [issuer, account]
        read = pyotp.parse_uri(uri)
        assert isinstance(read, pyotp.TOTP)
        assert (read.secret, read.interval, read.digits, read.issuer) == (RFC_SEED, STEP_S, 6, issuer)


async def test_each_tenant_has_a_share_of_the_remembered_seeds(areas: Areas) -> None:
    """A code that was checked with a replaced seed is refused, even after many logins of another tenant."""
    other = await areas.domains.add(await areas.tenancy.ensure_tenant(2, 1), "other")
    seeds = OneTimeSeeds(areas.store, areas.vault, areas.users, str, areas.clock, max_given=2)
    await add_ann(areas)
    assert await seeds.seed(areas.domain, "ann") is None
    await enrolled(areas)
    assert await seeds.seed(areas.domain, "ann") is not None
    for number in range(3):
        await areas.add_user(other, f"user{number}", b"hello")
        await enrolled(areas, f"user{number}", other)
        assert await seeds.seed(other, f"user{number}") is not None
    await enrolled(areas)
    assert not await seeds.spend(areas.domain, "ann", step(areas) + 1)


async def test_a_first_code_of_another_time_is_recognised(areas: Areas) -> None:
    """If the clock of the phone is wrong, the enrolment says so. The person already has the seed."""
    await add_ann(areas)
    made, _ = await areas.seeds.enrol(areas.domain, "ann")
    checked = await areas.seeds.confirm(areas.domain, "ann", code(made.seed, areas, steps=4))
    assert not checked.right
    assert 105 <= checked.off_s <= 135
    assert checked.hint == f": the phone's clock is off by about {checked.off_s} s (fast)"
