"""Step-ups in the store, as pages and logins use them: codes, browsers, bindings, digits, and attacks on each."""

from dataclasses import replace

import pytest
import trio
import trio.testing

from sallyport.areas.factors.denials import Denial, Denials, DeniedAt
from sallyport.areas.factors.stepup import repo
from sallyport.areas.factors.stepup.stepup import (
    ALPHABET,
    CODE_LENGTH,
    KEPT_US,
    LIFE_US,
    MAX_OPEN,
    bound_strength,
    plain,
    typed_form,
)
from sallyport.areas.mfa.fields import Binding, OwnFields
from sallyport.areas.mfa.host import StepUpState as State
from sallyport.areas.mfa.provider import Code, Strength
from sallyport.base.clock import SECOND
from sallyport.base.secret import token_hash
from sallyport.store.model import Tx
from sallyport.store.slices import SLICE
from tests.areas import Areas, stored
from tests.areas.factors.stepups import (
    ELSEWHERE,
    LAPTOP,
    STATION,
    STRANGER,
    LinkedNotices,
    bound,
    node,
    opened,
    question,
)

CODE, ADDRESS, UNBOUND = (OwnFields(binding=each) for each in Binding)
PASSKEY = Strength.PHISHING_RESISTANT


async def test_the_page_shows_the_login(areas: Areas) -> None:
    """The first browser that sends the code sees device, place, address, time, and the person's factors."""
    shown = await bound(node(areas), question(areas))
    assert (shown.user, shown.device, shown.place, shown.source) == ("ann", "vpn-1", "Berlin", "192.0.2.7")
    assert (shown.address, shown.state, shown.problem, shown.digits) == (STATION, State.OPEN, "", "")
    assert shown.factors == ("passkey", "totp")
    assert (shown.opened_at, shown.expires_at) == (areas.clock(), areas.clock() + 90 * SECOND)


async def test_the_address_is_short_and_stable(areas: Areas) -> None:
    """The address has at most 60 characters. A repeated request for the same login has the same one, also after a
    restart."""
    page = await opened(node(areas), question(areas))
    assert page.address == f"https://vpn.example.org/mfa/{plain(page.code)}"
    assert (page.site, len(page.address) <= 60, len(page.code)) == ("vpn.example.org/mfa", True, 11)
    assert await opened(node(areas), question(areas)) == page
    assert await opened(node(areas), question(areas, 2)) != page


@pytest.mark.parametrize("typed", ["ABCDE-23456", "abcde23456", " abcde 23456 ", "ABCDE\u201123456", "ABCDE.23456"])
def test_a_code_is_read_as_it_is_typed(typed: str) -> None:
    """Case, blanks and dashes do not matter."""
    assert plain(typed) == "ABCDE23456"


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "ABCDE2345",
        "ABCDE234567",
        "ABCDE2345O",
        "ÄBCDE23456",
        "\u017fBCDE23456",
        "A" * 4000,
        "ABCDE23456" + " " * 99 + "x",
    ],
)
def test_other_texts_are_no_codes(typed: str) -> None:
    """A text of another length or with other characters is refused without a look-up."""
    assert plain(typed) == ""


def test_codes_have_no_look_alikes() -> None:
    """No two characters of the alphabet look alike, and each is its own capital letter."""
    assert not set(ALPHABET) & set("01ILO")
    assert plain(typed_form(ALPHABET[:CODE_LENGTH])) == ALPHABET[:CODE_LENGTH]


async def test_the_first_browser_has_the_page(areas: Areas) -> None:
    """A second browser with the code sees what an unknown code shows, and cannot prove. The first one can reload."""
    stepups = node(areas)
    page = await opened(stepups, question(areas))
    shown = await stepups.opened(page.code, LAPTOP, STATION)
    assert shown is not None
    assert await stepups.opened(page.code, STRANGER, STATION) is None
    assert await stepups.shown(shown.id, STRANGER) is None
    assert not (await stepups.prove(shown.id, STRANGER, "passkey", PASSKEY, STATION)).accepted
    assert await stepups.deny(shown.id, STRANGER) is None
    assert await stepups.failed(shown.id, STRANGER) == 0
    assert await stepups.opened(page.code, LAPTOP, STATION) == shown == await stepups.shown(shown.id, LAPTOP)
    assert (await stepups.state_of(shown.id, within_s=0))[0] is State.OPEN


async def test_two_browsers_at_once(areas: Areas) -> None:
    """Of two browsers that send the code at the same time, one has the page."""
    page = await opened(node(areas), question(areas))
    found = []

    async def send(browser: str) -> None:
        found.append(await node(areas).opened(page.code, browser, STATION))

    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(send, f"browser {number}")
    assert len([each for each in found if each is not None]) == 1


async def test_unknown_over_and_foreign_codes_look_alike(areas: Areas) -> None:
    """The page of a code that does not exist, has ended, has expired or belongs to another browser is the same."""
    stepups = node(areas)
    ended, expired = await opened(stepups, question(areas, 1)), await opened(stepups, question(areas, 2))
    await stepups.end(question(areas, 1).challenge_id)
    areas.clock.pass_by(91)
    foreign = await opened(stepups, question(areas, 3))
    await stepups.opened(foreign.code, STRANGER, STATION)
    for code in ("ABCDE23456", ended.code, expired.code, foreign.code, "no code"):
        assert await stepups.opened(code, LAPTOP, STATION) is None


async def test_a_code_lives_two_minutes(areas: Areas) -> None:
    """A login that waits longer than two minutes does not make its code live longer."""
    stepups, asked = node(areas), question(areas)
    page = await opened(stepups, replace(asked, expires_at=areas.clock() + 300 * SECOND))
    areas.clock.pass_by(LIFE_US / SECOND)
    assert await stepups.opened(page.code, LAPTOP, STATION) is None


async def test_a_proof_shows_digits(areas: Areas) -> None:
    """With the binding `code`, the page shows digits after the proof, again after a reload, and no login is admitted
    without them."""
    stepups = node(areas)
    shown = await bound(stepups, question(areas), CODE)
    assert not await stepups.check_digits(shown.id, Code("000000"))
    proof = await stepups.prove(shown.id, LAPTOP, "passkey", PASSKEY, STATION)
    assert (proof.accepted, len(proof.digits), proof.strength) == (True, 6, Strength.TWO_CHANNELS)
    again = await stepups.shown(shown.id, LAPTOP)
    assert again is not None
    assert (again.state, again.digits, again.factors) == (State.PROVEN, proof.digits, ())
    assert await stepups.check_digits(shown.id, Code(proof.digits))
    assert not await stepups.check_digits(shown.id, Code(""))
    assert not await stepups.check_digits(shown.id, Code(proof.digits[:-1]))
    assert not (await stepups.prove(shown.id, LAPTOP, "passkey", PASSKEY, STATION)).accepted


@pytest.mark.parametrize("digits", [4, 5, 8])
async def test_the_number_of_digits_is_a_setting(areas: Areas, digits: int) -> None:
    """The page shows as many digits as the domain wants."""
    stepups = node(areas)
    shown = await bound(stepups, question(areas), OwnFields(digits=digits))
    assert len((await stepups.prove(shown.id, LAPTOP, "totp", Strength.TWO_CHANNELS, STATION)).digits) == digits


async def test_digits_differ(areas: Areas) -> None:
    """The digits of one login do not help at another one."""
    stepups = node(areas)
    digits = set()
    for number in range(5):
        shown = await bound(stepups, question(areas, number, user=f"user{number}"))
        digits.add((await stepups.prove(shown.id, LAPTOP, "passkey", PASSKEY, STATION)).digits)
    assert len(digits) > 1


async def test_three_wrong_digits_end_the_login(areas: Areas) -> None:
    """The count is that of the login, over restarts and nodes. After the last try, the right digits do not help, and
    the page says why."""
    shown = await bound(node(areas), question(areas))
    proof = await node(areas).prove(shown.id, LAPTOP, "passkey", PASSKEY, STATION)
    for left in (2, 1, 0):
        assert await node(areas).take_answer(shown.id)
        assert await node(areas).answer_was_wrong(shown.id) == left
    assert not await node(areas).take_answer(shown.id)
    assert not await node(areas).check_digits(shown.id, Code(proof.digits))
    assert await node(areas).use(shown.id) is State.WRONG
    over = await node(areas).shown(shown.id, LAPTOP)
    assert over is not None
    assert (over.state, over.digits, "attempts" in over.problem) == (State.WRONG, "", True)


async def test_three_wrong_proofs_end_the_login(areas: Areas) -> None:
    """A person who types wrong codes on the page has three tries, and then the login is refused."""
    stepups = node(areas)
    shown = await bound(stepups, question(areas))
    assert not await stepups.take_try(shown.id, STRANGER)
    for left in (2, 1, 0):
        assert await stepups.take_try(shown.id, LAPTOP)
        assert await stepups.failed(shown.id, LAPTOP) == left
    assert not await stepups.take_try(shown.id, LAPTOP)
    assert not (await stepups.prove(shown.id, LAPTOP, "passkey", PASSKEY, STATION)).accepted
    assert (await stepups.state_of(shown.id, within_s=0))[0] is State.WRONG


async def test_only_the_factors_of_the_domain_are_accepted(areas: Areas) -> None:
    """The page offers the factors that the domain accepts and the person has. It accepts no other one."""
    stepups = node(areas, factors=("passkey", "totp", "bypass"))
    shown = await bound(stepups, question(areas), OwnFields(factors="passkey,oidc"))
    assert shown.factors == ("passkey",)
    assert not (await stepups.prove(shown.id, LAPTOP, "totp", Strength.TWO_CHANNELS, STATION)).accepted
    assert (await stepups.prove(shown.id, LAPTOP, "passkey", PASSKEY, STATION)).accepted


async def test_the_address_binds(areas: Areas) -> None:
    """With the binding `address`, a passkey at the station's address is phishing-resistant, and shows no digits."""
    stepups = node(areas)
    shown = await bound(stepups, question(areas), ADDRESS)
    proof = await stepups.prove(shown.id, LAPTOP, "passkey", PASSKEY, STATION)
    assert (proof.accepted, proof.digits, proof.strength) == (True, "", Strength.PHISHING_RESISTANT)
    assert await stepups.state_of(shown.id, within_s=0) == (State.PROVEN, Strength.PHISHING_RESISTANT)


async def test_a_relayed_link_is_not_opened(areas: Areas) -> None:
    """The victim of a relayed link is at another address. The page says why it takes no proof, and stays free for the
    browser at the station."""
    stepups = node(areas)
    page = await opened(stepups, question(areas), ADDRESS)
    victim = await stepups.opened(page.code, STRANGER, ELSEWHERE)
    assert victim is not None
    assert (victim.factors, "address" in victim.problem) == ((), True)
    assert not (await stepups.prove(victim.id, STRANGER, "passkey", PASSKEY, ELSEWHERE)).accepted
    shown = await stepups.opened(page.code, LAPTOP, STATION)
    assert shown is not None
    assert shown.factors == ("passkey", "totp")


async def test_a_browser_that_moves_is_refused(areas: Areas) -> None:
    """A proof from another address than that of the station ends the login as unbound."""
    stepups = node(areas)
    shown = await bound(stepups, question(areas), ADDRESS)
    proof = await stepups.prove(shown.id, LAPTOP, "passkey", PASSKEY, ELSEWHERE)
    assert (proof.accepted, "another address" in proof.text) == (False, True)
    assert (await stepups.state_of(shown.id, within_s=0))[0] is State.UNBOUND
    assert not (await stepups.prove(shown.id, LAPTOP, "passkey", PASSKEY, STATION)).accepted


@pytest.mark.parametrize(
    ("station", "browser"),
    [
        pytest.param("198.51.100.7", "2001:db8::7", id="other family"),
        pytest.param("192.168.1.7", "192.168.1.7", id="private"),
        pytest.param("100.64.0.7", "100.64.0.7", id="carrier NAT"),
        pytest.param("127.0.0.1", "127.0.0.1", id="loopback"),
        pytest.param("", "198.51.100.7", id="unsigned"),
        pytest.param("", "", id="nothing"),
        pytest.param("198.51.100.7", "unknown", id="proxy without address"),
        pytest.param("00-11-22-33-44-55", "00-11-22-33-44-55", id="MAC"),
        pytest.param("fe80::1", "fe80::1", id="link-local"),
        pytest.param("2002:c633:6407::1", "2002:c633:6407::1", id="6to4"),
    ],
)
async def test_what_cannot_be_told_is_not_equal(areas: Areas, station: str, browser: str) -> None:
    """Addresses that are not global, or of two families, bind nothing."""
    stepups = node(areas)
    page = await opened(stepups, question(areas, address=station), ADDRESS)
    shown = await stepups.opened(page.code, LAPTOP, browser)
    assert shown is not None
    assert (shown.factors, bool(shown.problem)) == ((), True)


@pytest.mark.parametrize("browser", ["::ffff:198.51.100.7", "198.51.100.7"])
async def test_a_mapped_address_is_the_same(areas: Areas, browser: str) -> None:
    """A dual-stack proxy may write an IPv4 address as an IPv4-mapped one."""
    stepups = node(areas)
    page = await opened(stepups, question(areas), ADDRESS)
    shown = await stepups.opened(page.code, LAPTOP, browser)
    assert shown is not None
    assert not shown.problem


def test_the_strength_of_a_proof() -> None:
    """Only a passkey that is bound to the address is phishing-resistant. Digits make two channels."""
    strengths = {
        (proof, binding): bound_strength(proof, binding)
        for proof in (PASSKEY, Strength.TWO_CHANNELS)
        for binding in Binding
    }
    assert strengths == {
        (PASSKEY, Binding.CODE): Strength.TWO_CHANNELS,
        (PASSKEY, Binding.ADDRESS): Strength.PHISHING_RESISTANT,
        (PASSKEY, Binding.UNBOUND): Strength.ANY,
        (Strength.TWO_CHANNELS, Binding.CODE): Strength.TWO_CHANNELS,
        (Strength.TWO_CHANNELS, Binding.ADDRESS): Strength.ANY,
        (Strength.TWO_CHANNELS, Binding.UNBOUND): Strength.ANY,
    }
    assert bound_strength(Strength.ANY, Binding.CODE) is Strength.ANY


async def test_not_me(areas: Areas) -> None:
    """The login is refused even after the proof. All step-ups of the person end, and the denial is in the audit trail.
    Other people are asked on."""
    stepups = node(areas)
    shown = await bound(stepups, question(areas), UNBOUND)
    await opened(stepups, question(areas, 2), UNBOUND)
    await opened(stepups, question(areas, 3, user="bob"), UNBOUND)
    await stepups.prove(shown.id, LAPTOP, "passkey", PASSKEY, STATION)
    denied = await stepups.deny(shown.id, LAPTOP)
    assert denied is not None
    assert denied.state is State.DENIED
    assert await stepups.use(shown.id) is State.DENIED
    states = [(await stepups.state_of(question(areas, each).challenge_id, within_s=0))[0] for each in (2, 3)]
    assert states == [State.DENIED, State.OPEN]
    assert await denials_of(areas) == ["user ann"]


async def denials_of(areas: Areas) -> list[str]:
    """Return the targets of the denials in the audit trail."""
    sql = "select target from audit_trail where action = 'user.not_me' order by id"
    return [str(row[0]) for row in await areas.store.read(lambda tx: tx.rows(sql))]


async def test_a_proof_that_is_checked_meanwhile_does_not_undo_a_denial(areas: Areas) -> None:
    """The browser and the state are compared again when the proof is stored."""
    stepups = node(areas)
    shown = await bound(stepups, question(areas))

    async def stores(browser: str) -> bool:
        hashed, now = token_hash(browser), areas.clock()
        return await areas.store.write(lambda tx: repo.prove(tx, shown.id, hashed, "passkey", PASSKEY, now))

    assert not await stores(STRANGER)
    await stepups.deny(shown.id, LAPTOP)
    assert not await stores(LAPTOP)
    assert await stepups.state_of(shown.id, within_s=0) == (State.DENIED, Strength.ANY)


async def test_not_me_comes_too_late(areas: Areas) -> None:
    """After the login has continued, it cannot be refused any more. The denial is stored all the same."""
    stepups = node(areas)
    shown = await bound(stepups, question(areas), UNBOUND)
    await stepups.prove(shown.id, LAPTOP, "passkey", PASSKEY, STATION)
    assert await stepups.use(shown.id) is State.USED
    assert await stepups.use(shown.id) is State.USED  # by another node that continues the same login
    denied = await stepups.deny(shown.id, LAPTOP)
    assert denied is not None
    assert denied.state is State.USED
    assert await denials_of(areas) == ["user ann"]


async def test_a_denial_elsewhere_wakes_the_login(areas: Areas) -> None:
    """A person can deny a login on other pages, and at another node."""
    here, there = LinkedNotices(), LinkedNotices()
    here.other, there.other = there, here
    waits, denies = node(areas, here), Denials(areas.store, there, areas.app.factors.pauses, areas.clock)
    node(areas, there, denials=denies)
    page = question(areas)
    await opened(waits, page, UNBOUND)
    found = []

    async def wait() -> None:
        found.append((await waits.state_of(page.challenge_id, within_s=60))[0])

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked(0.05)
            await denies.deny(Denial(areas.domain, "ANN", DeniedAt.OWN_PAGES))
    assert found == [State.DENIED]


async def test_a_login_that_ended_takes_no_proof(areas: Areas) -> None:
    """After the time of the login, or its end, the page says that it is over."""
    stepups = node(areas)
    first, second = await bound(stepups, question(areas)), await bound(stepups, question(areas, 2))
    await stepups.end(first.id)
    assert "over" in (await stepups.prove(first.id, LAPTOP, "passkey", PASSKEY, STATION)).text
    areas.clock.pass_by(90)
    proof = await stepups.prove(second.id, LAPTOP, "passkey", PASSKEY, STATION)
    assert (proof.accepted, "over" in proof.text) == (False, True)
    assert (await stepups.state_of(second.id, within_s=0))[0] is State.OVER


async def test_a_proof_wakes_the_login_at_another_node(areas: Areas) -> None:
    """The page may be at another node than the login."""
    here, there = LinkedNotices(), LinkedNotices()
    here.other, there.other = there, here
    waits, proves = node(areas, here), node(areas, there)
    shown = await bound(proves, question(areas), UNBOUND)
    found = []

    async def wait() -> None:
        found.append(await waits.state_of(shown.id, within_s=60))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked(0.05)
            await proves.prove(shown.id, LAPTOP, "passkey", PASSKEY, STATION)
    assert found == [(State.PROVEN, Strength.ANY)]


async def test_a_person_has_few_open_step_ups(areas: Areas) -> None:
    """A third login of a person opens none. Another person, and a person whose step-up has ended, can open one."""
    stepups = node(areas)
    for number in range(MAX_OPEN):
        await opened(stepups, question(areas, number))
    assert await stepups.open(question(areas, 9, user="ANN"), CODE) is None
    assert await stepups.open(question(areas, 8, user="bob"), CODE) is not None
    assert await stepups.open(question(areas, 0), CODE) is not None  # the same login asks again
    await stepups.end(question(areas, 0).challenge_id)
    assert await stepups.open(question(areas, 9), CODE) is not None


async def test_the_store_contains_neither_code_nor_digits(areas: Areas) -> None:
    """A copy of the store opens no page, and gives no digits."""
    stepups = node(areas)
    page = await opened(stepups, question(areas))
    shown = await stepups.opened(page.code, LAPTOP, STATION)
    assert shown is not None
    proof = await stepups.prove(shown.id, LAPTOP, "passkey", PASSKEY, STATION)
    kept = stored(areas.store)
    for secret in (plain(page.code), page.code, LAPTOP, f'"{proof.digits}"'):
        assert secret.encode() not in kept


async def test_old_step_ups_are_deleted(areas: Areas) -> None:
    """Rows are deleted a while after their end, and all of them after a restore."""
    stepups = node(areas)
    await opened(stepups, question(areas))
    areas.clock.pass_by(90 + KEPT_US / SECOND)
    await opened(stepups, question(areas, 2))
    now = areas.clock()
    assert await areas.store.write(lambda tx: repo.purge(tx, now)) == 0
    areas.clock.pass_by(1)
    assert await areas.store.write(lambda tx: repo.purge(tx, now + SECOND)) == 1
    await areas.store.write(lambda tx: areas.app.areas.void(tx, revoke_tokens=False))
    assert await areas.store.read(lambda tx: tx.value(int, "select count(*) from stepups")) == 0


async def test_all_old_step_ups_are_deleted_at_once(areas: Areas) -> None:
    """Many step-ups are deleted in several transactions, so that a busy hour does not fill the table."""
    stepups = node(areas)
    await opened(stepups, question(areas))
    copied = (
        "insert into stepups select cast(:n as text), domain_id, user_key, user_name, cast(:n as text), device, place, "
        "source, station, address, binding, factors, digits, state, factor, strength, browser_hash, wrong_digits, "
        "wrong_proofs, opened_at, expires_at, 0, 0, 1 from stepups where length(id) = 32"
    )

    def copy(tx: Tx) -> None:
        for number in range(2 * SLICE + 1):
            tx.execute(copied, n=number)

    await areas.store.write(copy)
    areas.clock.pass_by(91 + KEPT_US / SECOND)
    await stepups.delete_old()
    assert await areas.store.read(lambda tx: tx.value(int, "select count(*) from stepups")) == 0


async def test_a_removed_domain_has_no_pages(areas: Areas) -> None:
    """The code of a login in a domain that was removed opens nothing."""
    stepups = node(areas)
    page = await opened(stepups, question(areas))
    await areas.store.write(lambda tx: tx.execute("update domains set removed_at = 1 where id = :d", d=areas.domain))
    assert await stepups.opened(page.code, LAPTOP, STATION) is None
