"""Guesses of the codes of pages: the limits of addresses, of networks, and of all together."""

import secrets

import pytest
from structlog.testing import capture_logs

from sallyport.areas.factors.stepup.limits import (
    NEW_ADDRESSES,
    WRONG_CODES,
    WRONG_CODES_OF_48,
    WRONG_CODES_OF_56,
    WRONG_CODES_OF_ALL,
)
from sallyport.areas.factors.stepup.stepup import ALPHABET, CODE_LENGTH
from sallyport.base.errors import TooMany
from tests.areas import Areas
from tests.areas.factors.stepups import ELSEWHERE, LAPTOP, STATION, STRANGER, node, opened, question, with_pages


async def test_guesses_are_limited_by_address(areas: Areas) -> None:
    """After many wrong codes, an address waits, even with a right code. Another address does not."""
    stepups = node(areas)
    page = await opened(stepups, question(areas))
    for _ in range(WRONG_CODES):
        assert await stepups.opened("ABCDE23456", STRANGER, ELSEWHERE) is None
    with pytest.raises(TooMany, match="wait a minute"):
        await stepups.opened(page.code, STRANGER, ELSEWHERE)
    assert await stepups.opened(page.code, LAPTOP, STATION) is not None


async def test_guesses_are_limited_in_total(areas: Areas) -> None:
    """An attacker with many addresses has a limit too."""
    stepups = node(areas)
    for number in range(WRONG_CODES_OF_ALL):
        stepups._guesses.fail(f"10.{number // 256}.{number % 256}.1")
    with pytest.raises(TooMany):
        await stepups.opened("ABCDE23456", LAPTOP, "10.117.47.1")


async def test_a_thousand_open_step_ups_are_not_found_by_guesses(areas: Areas) -> None:
    """An attacker with a hundred addresses guesses while a thousand people have open pages. No guess opens a page, each
    address is refused after its share, and the pages still open in the browsers of their people."""
    stepups = node(areas)
    pages = [await opened(stepups, question(areas, each, user=f"user{each}")) for each in range(1, 1001)]
    found = refused = 0
    for number in range(100 * (WRONG_CODES + 1)):
        guess = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
        try:
            found += await stepups.opened(guess, STRANGER, f"10.0.{number % 100}.1") is not None
        except TooMany:
            refused += 1
    assert (found, refused) == (0, 100)
    for at in (0, 500, 999):
        assert await stepups.opened(pages[at].code, LAPTOP, STATION) is not None


async def test_many_addresses_do_not_keep_others_out(areas: Areas) -> None:
    """After the limit of all addresses, those without a wrong code are still let in, and these have a limit too."""
    stepups = with_pages(areas)
    page = await opened(stepups, question(areas))
    for number in range(WRONG_CODES_OF_ALL):
        stepups._guesses.fail(f"10.{number >> 8}.{number & 255}.1")
    with capture_logs() as logged:
        assert await stepups.opened(page.code, LAPTOP, STATION) is not None
        admitted = [not stepups._guesses.refuses(f"172.16.{number >> 8}.{number & 255}") for number in range(700)]
    assert admitted == [True] * (NEW_ADDRESSES - 1) + [False] * (701 - NEW_ADDRESSES)
    assert [each["event"] for each in logged].count("stepup_codes_guessed") == 1
    assert areas.sample("sallyport_stepup_code_failures_total", result="total_limit") == 701
    assert areas.sample("sallyport_stepup_code_failures_total", result="wrong") == WRONG_CODES_OF_ALL


@pytest.mark.parametrize(
    ("address", "inside", "outside", "limit"),
    [
        ("2001:db8:0:{:x}::1", "2001:db8:0:ff::1", "2001:db8:0:100::1", WRONG_CODES_OF_56),
        ("2001:db8:0:{:x}00::1", "2001:db8:0:ff00::1", "2001:db8:1::1", WRONG_CODES_OF_48),
    ],
    ids=["/56", "/48"],
)
async def test_guesses_are_limited_by_network(
    areas: Areas, address: str, inside: str, outside: str, limit: int
) -> None:
    """A subscriber with many /64 networks has one limit. The next subscriber does not notice it."""
    stepups = node(areas)
    page = await opened(stepups, question(areas))
    for number in range(limit):
        assert await stepups.opened("ABCDE23456", STRANGER, address.format(number)) is None
    with pytest.raises(TooMany):
        await stepups.opened(page.code, LAPTOP, inside)
    assert await stepups.opened(page.code, LAPTOP, outside) is not None
