"""People with wallets, for tests of what holders do. They use the areas of the service.

world.issuer             the DID of an issuer in the domain corp
world.ann                ann's wallet, with a key of its own and a credential that it has accepted
await world.person("bob@corp.example", signer(3), "bob")
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from sallyport.areas.did.credentials.credential import NewSchema
from sallyport.areas.did.crypto.jws import Signer
from sallyport.areas.did.wallets.wallet import NewWallet
from sallyport.base.clock import SECOND
from sallyport.base.wire import JSON
from sallyport.web.scope import Caller, Role
from tests.areas import Areas
from tests.areas.did.crypto.signers import did, signer
from tests.areas.did.world import Identity, identity, new_did

YEAR_S = 365 * 86_400
ANY: dict[str, JSON] = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}


@dataclass
class Person:
    """A person with a wallet. credential: the ID of the credential that the wallet has accepted, or 0 if there is none.
    jwt: the token of that credential, or an empty text.
    """

    wallet_id: int
    wallet_key: str
    caller: Caller
    email: str
    signer: Signer
    credential: int = 0
    jwt: str = ""

    @property
    def did(self) -> str:
        """The holder's DID."""
        return did(self.signer)


class World:
    """The DID services, and the people that use them."""

    def __init__(self, areas: Areas, issuer: Identity) -> None:
        self.areas = areas
        self.did = areas.did
        self.dids = areas.did.dids
        self.admin = Caller(0, 1, 1, areas.tenant, Role.ADMIN, "admin")
        self.identity = issuer
        self.issuer = issuer.issuer.did
        self.schema = issuer.schema.id
        self.ann: Person

    async def new_issuer(self, name: str) -> str:
        """Add an issuer and return its DID."""
        return (await self.dids.create_issuer(self.areas.tenant, new_did(self.areas.domain, name=name))).did

    async def person(self, email: str, by: Signer, username: str = "") -> Person:
        """Add a person with a wallet. If a user name is given, the wallet also gets a credential and accepts it."""
        new = NewWallet(self.areas.domain, email.partition("@")[0], email, "")
        made = await self.did.wallets.register(self.areas.tenant, new)
        jwk = by.key.public.jwk
        await self.dids.create_holder(self.areas.tenant, new_did(self.areas.domain), made.wallet_id, self.issuer, jwk)
        caller = await self.areas.tenancy.authenticate(made.token)
        person = Person(made.wallet_id, made.wallet_key, caller, email, by)
        if username:
            await self.give(person, await self.issue(person.did, username))
        return person

    async def give(self, person: Person, credential_id: int) -> None:
        """Assign a credential to a wallet and accept it."""
        await self.did.wallets.assign(self.areas.tenant, [(person.wallet_id, credential_id)])
        await self.did.wallets.acknowledge(person.caller, person.wallet_id, credential_id, accept=True)
        person.credential, person.jwt = credential_id, await self.token(credential_id)

    async def issue(
        self, holder_did: str, username: str, *, issuer: str = "", lasts_s: int = YEAR_S, begins_s: int = 0
    ) -> int:
        """Issue a credential and return its ID. begins_s: the seconds until the credential becomes valid."""
        clock = self.areas.clock
        clock.pass_by(begins_s)
        claims: dict[str, JSON] = {"epmUsername": username} if username else {}
        new = NewSchema(issuer or self.issuer, "anything", ANY, sign=False)
        schema = self.schema if username else (await self.areas.did.schemas.create(self.areas.tenant, new)).id
        issued = await self.identity.issue(
            holder_did=holder_did,
            issuer_did=issuer or self.issuer,
            schema_id=schema,
            claims=claims,
            password=f"the password of {username}" if username else "",
            expires_at=clock() + lasts_s * SECOND,
        )
        clock.pass_by(-begins_s)
        return issued.id

    async def revoke(self, person: Person) -> None:
        """Revoke a person's credential."""
        await self.areas.did.credentials.revoke(self.areas.domain, person.credential)

    async def token(self, credential_id: int) -> str:
        """Return the token of a credential."""
        sql = "select jwt from credential_tokens where credential_id = :id"
        return await self.areas.store.read(lambda tx: tx.value(str, sql, id=credential_id)) or ""


async def populated(areas: Areas) -> World:
    """Return a world with an issuer in the domain corp, and with ann, whose wallet has accepted a credential."""
    issuer = await identity(areas)
    world = World(areas, issuer)
    world.ann = await world.person("ann@corp.example", signer(4), "ann")
    return world


@pytest.fixture
async def world(areas: Areas) -> AsyncIterator[World]:
    """Return a world with an issuer in the domain corp, and with ann, whose wallet has accepted a credential."""
    yield await populated(areas)
