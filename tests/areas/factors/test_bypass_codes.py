"""Bypass codes: single and several uses, wrong tries, exact counts over two nodes, and the end of codes."""

import re

import pytest
import trio
from structlog.testing import capture_logs

from sallyport.areas.factors.bypass_codes.code import MAX_CODES, MAX_WRONG, BypassCode, Wanted, digits_of, new_codes
from sallyport.areas.factors.bypass_codes.service import BypassCodes
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, NotFound
from tests.areas import Areas


def node(areas: Areas) -> BypassCodes:
    """Return the codes as another node has them."""
    return BypassCodes(areas.store, areas.vault, areas.seeds.login_name, areas.clock)


async def made(areas: Areas, user: str = "Ann", *, codes: int = 1, uses: int = 1, hours: int = 24) -> list[str]:
    """Add a user if there is none of this name, and make codes."""
    try:
        await areas.seeds.login_name(areas.domain, user)
    except NotFound:
        await areas.add_user(areas.domain, user, b"password")
    return list((await node(areas).make(areas.domain, user, Wanted(codes, uses, hours))).codes)


async def codes_of(areas: Areas, user: str = "ann") -> list[BypassCode]:
    """Return the codes of a user."""
    return (await node(areas).page(areas.domain, user, 0, 100))[0]


async def states(areas: Areas) -> list[str]:
    """Return the states of ann's codes."""
    return [each.state(areas.clock()) for each in await codes_of(areas)]


def wrong(code: str, number: int = 1) -> str:
    """Return another code with the same first digit."""
    return f"{code[0]}{(int(code[1:]) + number) % 10**7:07}"


async def trail(areas: Areas) -> list[tuple[str, str, str]]:
    """Return (action, target, changes) of the audit trail about bypass codes."""
    sql = "select action, target, changes from audit_trail where action like 'user.bypass_codes.%' order by id"
    return [(str(a), str(b), str(c)) for a, b, c in await areas.store.read(lambda tx: tx.rows(sql))]


def test_new_codes_differ_in_their_first_digit() -> None:
    """Ten codes have all ten first digits. A code has eight digits, and is read with blanks and dashes."""
    codes = new_codes(MAX_CODES)
    assert [code[0] for code in codes] == list("0123456789")
    assert all(re.fullmatch("[0-9]{8}", code) for code in codes)
    typed = ["12345678", " 1234 5678 ", "1234-5678", "1234567", "123456789", "1234567x", "", "١٢٣٤٥٦٧٨"]
    assert [digits_of(each) for each in typed] == ["12345678"] * 3 + [""] * 5


async def test_a_code_is_used_once(areas: Areas) -> None:
    """Case of the name and blanks in the code do not matter. The second use is refused."""
    (code,) = await made(areas)
    codes = node(areas)
    assert await codes.has_code(areas.domain, "ANN")
    assert await codes.spend(areas.domain, "ANN", f"{code[:4]} {code[4:]}")
    assert not await codes.spend(areas.domain, "ann", code)
    assert not await codes.has_code(areas.domain, "ann")
    (stored,) = await codes_of(areas)
    assert (stored.state(areas.clock()), stored.used, stored.last_used_at) == ("used", 1, areas.clock())


async def test_a_code_is_used_several_times_until_a_time(areas: Areas) -> None:
    """A code with three uses is accepted three times. Another expires before its last use."""
    (code,) = await made(areas, uses=3)
    assert [await node(areas).spend(areas.domain, "ann", code) for _ in range(4)] == [True, True, True, False]
    (code,) = await made(areas, uses=2, hours=1)
    assert await node(areas).spend(areas.domain, "ann", code)
    areas.clock.pass_by(3600)
    assert not await node(areas).spend(areas.domain, "ann", code)
    assert await states(areas) == ["expired"]


async def test_two_nodes_accept_a_single_use_once(areas: Areas) -> None:
    """Of four simultaneous uses at two nodes, one is accepted."""
    (code,) = await made(areas)
    results = list[bool]()

    async def spend(codes: BypassCodes) -> None:
        results.append(await codes.spend(areas.domain, "ann", code))

    here, there = node(areas), node(areas)
    async with trio.open_nursery() as nursery:
        for codes in (here, there, here, there):
            nursery.start_soon(spend, codes)
    assert sorted(results) == [False, False, False, True]


async def test_wrong_tries_end_a_code(areas: Areas) -> None:
    """MAX_WRONG wrong tries end one code, also at the same time on two nodes, and the right code is then refused. The
    other code of the person remains valid."""
    first, second = await made(areas, codes=2)
    here, there = node(areas), node(areas)

    async def guess(codes: BypassCodes, number: int) -> None:
        assert not await codes.spend(areas.domain, "ann", wrong(first, number))

    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            for number in range(1, MAX_WRONG + 4):
                nursery.start_soon(guess, (here, there)[number % 2], number)
    assert [each["event"] for each in logs] == ["bypass_code_ended"]
    assert not await here.spend(areas.domain, "ann", first)
    assert await states(areas) == ["guessed", "valid"]
    assert await here.spend(areas.domain, "ann", second)


async def test_a_use_forgets_the_wrong_tries(areas: Areas) -> None:
    """A person who mistypes a code now and then does not lose it."""
    (code,) = await made(areas, uses=3)
    for _ in range(2):
        for number in range(1, MAX_WRONG):
            assert not await node(areas).spend(areas.domain, "ann", wrong(code, number))
        assert await node(areas).spend(areas.domain, "ann", code)


async def test_other_guesses_count_against_no_code(areas: Areas) -> None:
    """Another first digit, another person, another domain and another form are refused, and are no try of the code."""
    (code,) = await made(areas)
    other = await areas.domains.add(areas.tenant, "branch")
    await areas.add_user(areas.domain, "bob", b"password")
    codes = node(areas)
    assert not await codes.spend(areas.domain, "ann", f"{(int(code[0]) + 1) % 10}{code[1:]}")
    assert not await codes.spend(areas.domain, "bob", code)
    assert not await codes.spend(other, "ann", code)
    for typed in ("", "123456", "x" * 5000, code + "0"):
        assert not await codes.spend(areas.domain, "ann", typed)
    assert [each.wrong for each in await codes_of(areas)] == [0]


async def test_new_codes_replace_the_former_ones(areas: Areas) -> None:
    """A former code is refused as soon as there are new ones."""
    former = await made(areas, codes=2)
    new = await node(areas).make(areas.domain, "ann", Wanted())
    assert (new.person.name, new.former, len(new.codes)) == ("Ann", 2, 1)
    assert [await node(areas).spend(areas.domain, "ann", each) for each in former if each not in new.codes] == [
        False
    ] * 2
    assert await node(areas).spend(areas.domain, "ann", new.codes[0])


async def test_codes_are_removed(areas: Areas) -> None:
    """Removed codes are refused. There is nothing left to remove."""
    (code,) = await made(areas)
    assert await node(areas).remove(areas.domain, "ANN") == 1
    assert not await node(areas).spend(areas.domain, "ann", code)
    with pytest.raises(NotFound, match="no bypass codes"):
        await node(areas).remove(areas.domain, "ann")


async def test_the_audit_trail_has_no_code(areas: Areas) -> None:
    """Making, using and removing are recorded with the number of uses, and without digits."""
    (code,) = await made(areas, uses=2)
    await node(areas).spend(areas.domain, "ann", code)
    await node(areas).remove(areas.domain, "ann")
    entries = await trail(areas)
    assert [(action, target) for action, target, _ in entries] == [
        ("user.bypass_codes.make", "bypass codes of Ann"),
        ("user.bypass_codes.use", f"bypass codes of Ann, first digit {code[0]}"),
        ("user.bypass_codes.remove", "bypass codes of ann"),
    ]
    assert '"used": [0, 1]' in entries[1][2]
    assert not any(code[1:] in text for entry in entries for text in entry)


async def test_the_store_has_a_sealed_slow_hash(areas: Areas) -> None:
    """The stored value opens to an Argon2id hash, and only with the identity of its row."""
    await made(areas)
    (stored,) = await codes_of(areas)
    assert areas.vault.open(stored.sealed, f"bypass_codes/{stored.id}/hash").startswith(b"$argon2id$")


async def test_an_unknown_user_gets_no_codes(areas: Areas) -> None:
    """A mistyped name is an error, so that no later user of this name gets the codes."""
    with pytest.raises(NotFound, match="user not found"):
        await node(areas).make(areas.domain, "nobody", Wanted())


async def test_the_next_user_of_a_name_gets_no_codes(areas: Areas) -> None:
    """A deleted user leaves no codes."""
    (code,) = await made(areas)
    await areas.remove_user(areas.domain, "ann")
    await areas.add_user(areas.domain, "ann", b"password")
    assert not await node(areas).spend(areas.domain, "ann", code)


async def test_codes_end_with_their_domain_and_with_a_restore(areas: Areas) -> None:
    """A restored backup has no codes, because they may have been used after it."""
    await made(areas, codes=2)
    await areas.store.write(lambda tx: areas.app.areas.void(tx, False))
    assert await codes_of(areas) == []


async def test_a_domain_has_a_maximum(areas: Areas) -> None:
    """Codes above the maximum are refused, and change nothing. Expired codes do not count."""
    codes = BypassCodes(areas.store, areas.vault, areas.seeds.login_name, areas.clock, max_codes=3)
    await areas.add_user(areas.domain, "bob", b"password")
    await made(areas, codes=2, hours=1)
    with pytest.raises(Conflict, match="at most 3 bypass codes"):
        await codes.make(areas.domain, "bob", Wanted(codes=2))
    assert await states(areas) == ["valid"] * 2
    areas.clock.pass_by(3600 + 1)
    await codes.make(areas.domain, "bob", Wanted(codes=2))
    assert (await codes_of(areas, "bob"))[0].expires_at == areas.clock() + 24 * 3600 * SECOND
