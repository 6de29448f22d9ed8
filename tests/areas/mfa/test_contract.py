"""Tests that every built-in provider passes the contract, and that the contract detects faulty providers."""

from collections.abc import AsyncIterator

import pytest
import trio

from sallyport.areas.mfa.contract import ProviderContract
from sallyport.areas.mfa.duo import Duo
from sallyport.areas.mfa.provider import Answer, Outcome, ProviderError, Question
from sallyport.areas.mfa.providers import BUILT_IN
from sallyport.areas.mfa.webhook import Webhook
from tests.areas import Areas
from tests.areas.did.holders import populated
from tests.areas.mfa.benches import HttpBench, RadiusBench, TotpBench, duo_bench, hook_bench, okta_bench, radius_bench
from tests.areas.mfa.duo_server import DuoServer
from tests.areas.mfa.hook_server import CODE, HookServer
from tests.areas.mfa.okta_server import PUSH, TOTP, OktaServer
from tests.areas.mfa.own_bench import OwnBench
from tests.areas.mfa.wallet_bench import WalletBench


class TestTotp(ProviderContract):
    """Codes from an app."""

    @pytest.fixture
    def bench(self) -> TotpBench:
        """A user with a seed."""
        return TotpBench()


class TestDuoPush(ProviderContract):
    """Duo with a phone that supports push."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[HttpBench[DuoServer]]:
        """A Duo server."""
        async with duo_bench() as bench:
            yield bench


class TestDuoPasscode(ProviderContract):
    """Duo with a hardware token."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[HttpBench[DuoServer]]:
        """A Duo server."""
        async with duo_bench() as bench:
            bench.server.capabilities = ["auto", "mobile_otp"]
            yield bench


class TestOktaPush(ProviderContract):
    """Okta with a phone and an app."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[HttpBench[OktaServer]]:
        """An Okta server."""
        async with okta_bench() as bench:
            bench.server.factors = [PUSH, TOTP]
            yield bench


class TestOktaCode(ProviderContract):
    """Okta with only an app."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[HttpBench[OktaServer]]:
        """An Okta server."""
        async with okta_bench() as bench:
            bench.server.factors = [TOTP]
            yield bench


class TestWallet(ProviderContract):
    """A wallet with a credential."""

    @pytest.fixture
    async def bench(self, areas: Areas) -> AsyncIterator[WalletBench]:
        """Ann, and the presentation requests of the service."""
        bench = WalletBench(await populated(areas))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.run)
            yield bench
            nursery.cancel_scope.cancel()


class TestOwnCode(ProviderContract):
    """A person with an app, at a service without pages."""

    @pytest.fixture
    async def bench(self, areas: Areas) -> OwnBench:
        """Ann with a seed."""
        return OwnBench(areas, factors=("totp",), fields={"factors": "totp"})


class TestOwnPage(ProviderContract):
    """A person with a passkey and an app, who gets a page and may type a code of the app."""

    @pytest.fixture
    async def bench(self, areas: Areas) -> OwnBench:
        """Ann with a passkey and a seed."""
        return OwnBench(areas, fields={"binding": "unbound", "factors": "passkey,totp", "digits": 4})


class TestWebhook(ProviderContract):
    """A hook that answers with a poll_url."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[HttpBench[HookServer]]:
        """A hook."""
        async with hook_bench() as bench:
            yield bench


class TestWebhookCode(ProviderContract):
    """A hook that sends a code, such as by SMS, and asks for it."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[HttpBench[HookServer]]:
        """A hook."""
        async with hook_bench() as bench:
            bench.server.asks_for_code, bench.right_code = True, CODE
            yield bench


class TestRadius(ProviderContract):
    """Another RADIUS server."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[RadiusBench]:
        """A RADIUS server."""
        async with radius_bench() as bench:
            yield bench


def test_every_provider_is_tested() -> None:
    """Every built-in provider has a bench in these tests."""
    elsewhere = {"privacyidea"}  # test_privacyidea.py
    assert {provider.name for provider in BUILT_IN} - elsewhere == {
        "totp",
        "duo",
        "okta",
        "webhook",
        "radius",
        "wallet",
        "own",
    }


# --- the contract finds faults ------------------------------------------------------------------------------------


class Gullible(Webhook):
    """A faulty provider that approves the login after any failure."""

    async def start(self, question: Question) -> Answer:
        """Approve."""
        try:
            return await super().start(question)
        except ProviderError:
            return Answer(Outcome.APPROVED)


class Talkative(Webhook):
    """A faulty provider whose errors contain its secret."""

    async def poll(self, handle: str) -> Answer:
        """Fail with the secret."""
        try:
            return await super().poll(handle)
        except ProviderError:
            raise ProviderError(f"cannot poll with {self._secret.decode()}") from None


class Pushy(Duo):
    """A faulty provider that sends a prompt at every call."""

    async def start(self, question: Question) -> Answer:
        """Prompt."""
        return await self._begin(question)


@pytest.mark.parametrize("bad", [Gullible, Talkative])
async def test_the_contract_finds_bad_failures(bad: type[Webhook]) -> None:
    """A provider that approves when it fails does not pass the contract, nor does one whose errors contain
    its secret."""
    async with hook_bench() as bench:
        bench.provider = bad
        with pytest.raises(AssertionError):
            await ProviderContract().test_failures_are_failures(bench)


async def test_the_contract_finds_second_prompts() -> None:
    """A provider that sends two prompts for one challenge does not pass the contract."""
    async with duo_bench() as bench:
        bench.provider = Pushy
        with pytest.raises(AssertionError):
            await ProviderContract().test_one_challenge_is_one_prompt(bench)
