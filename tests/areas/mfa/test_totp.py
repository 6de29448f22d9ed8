"""Tests of codes from an app: the test vectors of the RFCs, and the single use of each code."""

import hashlib
from collections.abc import Callable

import pytest

from sallyport.areas.mfa.provider import Code, Enrolment, Outcome, ProviderError
from sallyport.areas.mfa.totp import Totp
from sallyport.base.clock import SECOND
from sallyport.base.errors import SecretError, StoreError
from sallyport.base.totp import STEP_S, hotp, seed_octets, step_at
from sallyport.radius.password import chap_response
from tests.areas.mfa.benches import SEED, TotpBench
from tests.areas.mfa.host import USER, MemorySeeds, make_host, question

RFC_SEED = b"12345678901234567890"

# RFC 4226 appendix D
HOTP_CODES = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"]

# RFC 6238 appendix B: seconds since 1970, SHA-1, SHA-256, SHA-512; 8 digits; the seed as long as the hash
TOTP_CODES = [
    (59, "94287082", "46119246", "90693936"),
    (1111111109, "07081804", "68084774", "25091201"),
    (1111111111, "14050471", "67062674", "99943326"),
    (1234567890, "89005924", "91819424", "93441116"),
    (2000000000, "69279037", "90698825", "38618901"),
    (20000000000, "65353130", "77737706", "47863826"),
]


@pytest.mark.parametrize(("counter", "code"), list(enumerate(HOTP_CODES)))
def test_the_vectors_of_rfc_4226(counter: int, code: str) -> None:
    """The codes are those of RFC 4226 appendix D."""
    assert hotp(RFC_SEED, counter) == code


@pytest.mark.parametrize(
    ("digest", "size", "seconds", "code"),
    [
        pytest.param(
            digest, size, seconds, codes[number], id=f"{digest.__name__.removeprefix('openssl_')} at {seconds}"
        )
        for seconds, *codes in TOTP_CODES
        for number, (digest, size) in enumerate(((hashlib.sha1, 20), (hashlib.sha256, 32), (hashlib.sha512, 64)))
    ],
)
def test_the_vectors_of_rfc_6238(digest: Callable[..., "hashlib._Hash"], size: int, seconds: int, code: str) -> None:
    """The codes are those of RFC 6238 appendix B."""
    assert hotp((RFC_SEED * 4)[:size], step_at(seconds * SECOND), digits=8, digest=digest) == code


def test_a_seed_is_accepted_in_common_notations() -> None:
    """Groups, lower case letters and missing padding do not change a seed."""
    assert seed_octets("gezd gnbv-gy3t qojq GEZDGNBVGY3TQOJQ") == RFC_SEED
    assert seed_octets("MFRGG===") == seed_octets("MFRGG") == b"abc"


@pytest.mark.parametrize("text", ["", "   ", "01890189", "é", "otpauth://totp/x?secret=GEZDGNBV", "A"])
def test_a_seed_must_be_base32(text: str) -> None:
    with pytest.raises(ValueError, match="not base32"):
        seed_octets(text)


@pytest.mark.parametrize(("steps", "outcome"), [(-2, "wrong code"), (-1, "approved"), (0, "approved"), (1, "approved"),
                                                (2, "wrong code")])  # fmt: skip
async def test_codes_of_adjacent_steps_are_accepted(steps: int, outcome: str) -> None:
    """The clock of the app may differ by up to half a minute."""
    bench = TotpBench()
    answer = await bench.make().verify(question(), Code(bench.code(steps)), "")
    assert (answer.outcome, bool(answer.detail)) == (outcome, outcome != "approved")


async def test_a_code_is_accepted_once() -> None:
    """A used code is refused, and so are older codes. The code of the next time step is accepted."""
    bench = TotpBench()
    provider, code = bench.make(), bench.code()
    outcomes = []
    for typed in (code, code, bench.code(-1), bench.code(1), bench.code(1)):
        outcomes.append((await provider.verify(question(), Code(typed), "")).outcome)
    assert outcomes == ["approved", "wrong code", "wrong code", "approved", "wrong code"]
    assert bench.seeds.spent == {USER: step_at(bench.clock()) + 1}


async def test_a_chap_response_is_accepted_once() -> None:
    """A CHAP response that was made from the code is accepted like the code. The code is then used."""
    bench = TotpBench()
    challenge = bytes(range(16))
    code = Code(None, response=chap_response(7, bench.code().encode(), challenge), challenge=challenge)
    wrong = Code(None, response=chap_response(7, b"000000", challenge), challenge=challenge)
    outcomes = [(await bench.make().verify(question(), each, "")).outcome for each in (wrong, code, code)]
    assert outcomes == ["wrong code", "approved", "wrong code"]


async def test_a_user_with_a_seed_is_enrolled() -> None:
    """A user without a seed is not asked for a code."""
    provider = TotpBench().make()
    assert await provider.enrolled(USER) is Enrolment.ENROLLED
    assert (await provider.start(question())).outcome is Outcome.CODE
    assert await provider.enrolled("bob") is Enrolment.NOT_ENROLLED
    assert (await provider.start(question(user="bob"))).outcome is Outcome.NOT_ENROLLED
    assert (await provider.verify(question(user="bob"), Code("123456"), "")).outcome is Outcome.NOT_ENROLLED


class BrokenSeeds(MemorySeeds):
    """Seeds that raise an error when they are read."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def seed(self, domain_id: int, user: str) -> str | None:
        """Fail."""
        raise self.error


async def test_unreadable_seeds_are_a_failure() -> None:
    """If a seed cannot be read, this is a failure of the provider, and the message does not contain the seed.

    If the store fails, StoreError is raised.
    """
    host = make_host(seeds=MemorySeeds({USER: "not base32: 0189"}))
    with pytest.raises(ProviderError) as refused:
        await Totp(Totp.fields(), host).verify(question(), Code("123456"), "")
    assert "0189" not in str(refused.value)
    with pytest.raises(ProviderError):
        await Totp(Totp.fields(), make_host(seeds=BrokenSeeds(SecretError("altered")))).enrolled(USER)
    with pytest.raises(StoreError):
        await Totp(Totp.fields(), make_host(seeds=BrokenSeeds(StoreError("full")))).enrolled(USER)


def test_the_seed_of_the_tests_is_the_rfcs() -> None:
    assert seed_octets(SEED) == RFC_SEED


@pytest.mark.parametrize(
    ("seconds", "detail"),
    [
        (65, "the code is right for another time: the phone's clock is off by about 65 s (fast)"),
        (-65, "the code is right for another time: the phone's clock is off by about 55 s (slow)"),
        (600, "the code is right for another time: the phone's clock is off by about 605 s (fast)"),
        (3600, ""),
    ],
)
async def test_a_code_of_another_time_is_recognised(seconds: int, detail: str) -> None:
    """A code of a time step nearby is wrong, and the detail says how far the phone's clock is off."""
    bench = TotpBench()
    now = bench.clock() // SECOND
    bench.clock.now -= (now % STEP_S - 10) * SECOND  # ten seconds after the beginning of a time step
    typed = hotp(seed_octets(SEED), step_at(bench.clock() + seconds * SECOND))
    answer = await bench.make().verify(question(), Code(typed), "")
    assert (answer.outcome, answer.detail) == ("wrong code", detail)
    assert bench.seeds.spent == {}


async def test_a_used_code_is_recognised() -> None:
    """The detail tells that a code was used before."""
    bench = TotpBench()
    provider = bench.make()
    await provider.verify(question(), Code(bench.code()), "")
    answer = await provider.verify(question(), Code(bench.code()), "")
    assert answer.detail == "the code, or a newer one, was used before"


async def test_another_code_has_no_detail() -> None:
    """Nothing is said about a code of no time step nearby."""
    assert (await TotpBench().make().verify(question(), Code("abcdef"), "")).detail == ""
