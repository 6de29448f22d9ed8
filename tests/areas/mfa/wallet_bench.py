"""The wallet provider, with real presentation requests in a store and a user with a wallet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import trio

from sallyport.areas.did.crypto import vc
from sallyport.areas.mfa.contract import Behaviour
from sallyport.areas.mfa.host import ConfiguredProvider, Host, WalletAnswer
from sallyport.areas.mfa.wallet import Wallet
from tests.areas.did.holders import World
from tests.areas.mfa.host import make_host


@dataclass
class WalletBench:
    """The user ann, whose wallet answers as the behaviour says. The task `run` must be running."""

    world: World
    provider: type[ConfiguredProvider] = Wallet
    secrets: Sequence[str] = ()
    failures: frozenset[Behaviour] = frozenset()
    user: str = "ann"
    right_code: str = ""
    requests: int = 0
    behaviour: Behaviour = Behaviour.APPROVE
    _seen: set[int] = field(default_factory=set)
    _news: trio.Event = field(default_factory=trio.Event)

    def __post_init__(self) -> None:
        self.fields: Mapping[str, object] = {"issuerDid": self.world.issuer}
        host, areas = make_host(), self.world.areas
        self.host = Host(areas.domain, "corp", host.http, host.seeds, self, host.own, areas.clock)

    @property
    def prompts(self) -> int:
        """The number of presentation requests that were opened."""
        return len(self._seen)

    def behave(self, behaviour: Behaviour) -> None:
        """Behave this way from now on."""
        self.behaviour = behaviour
        self._news.set()

    async def run(self) -> None:
        """Answer open requests until the task is cancelled."""
        while True:
            for request_id in sorted(self._seen):
                if self.behaviour in {Behaviour.APPROVE, Behaviour.DENY}:
                    await self._answer(request_id)
            await self._news.wait()
            self._news = trio.Event()

    async def _answer(self, request_id: int) -> None:
        ann, presentations = self.world.ann, self.world.did.presentations
        if await self.world.did.prompts.answer(request_id, within_s=0) is not None:
            return
        if self.behaviour is Behaviour.DENY:
            await presentations.decline(ann.caller, ann.wallet_id, ann.did, request_id, None)
            return
        request, _ = await presentations.poll(ann.caller, ann.wallet_id, ann.wallet_key, ann.did, request_id)
        presentation = vc.present(
            [ann.jwt],
            ann.signer,
            audience=request.issuer_did,
            nonce=request.nonce,
            id="urn:uuid:p",
            now=self.world.areas.clock(),
        )
        await presentations.submit(ann.caller, ann.wallet_id, ann.did, request_id, presentation)

    # --- the host's wallets: the real ones, with counted calls ----------------------------------------------------

    async def enrolled(self, domain_id: int, user: str, issuer_did: str, schema_id: int) -> bool:
        """Count the call and pass it on to the real wallets."""
        self.requests += 1
        return await self.world.did.prompts.enrolled(domain_id, user, issuer_did, schema_id)

    async def open(
        self,
        domain_id: int,
        user: str,
        issuer_did: str,
        schema_id: int,
        *,
        challenge_id: str,
        purpose: str,
        expires_at: int,
    ) -> int | None:
        """Count the call, pass it on to the real wallets, and notify ann's wallet."""
        self.requests += 1
        opened = await self.world.did.prompts.open(
            self.world.areas.domain,
            user,
            issuer_did,
            schema_id,
            challenge_id=challenge_id,
            purpose=purpose,
            expires_at=expires_at,
        )
        if opened is not None:
            self._seen.add(opened)
            self._news.set()
        return opened

    async def answer(self, request_id: int, *, within_s: float) -> WalletAnswer | None:
        """Count the call and pass it on to the real wallets."""
        self.requests += 1
        return await self.world.did.prompts.answer(request_id, within_s=within_s)

    async def withdraw(self, request_id: int) -> None:
        """Count the call and pass it on to the real wallets."""
        self.requests += 1
        await self.world.did.prompts.withdraw(request_id)
