"""HTTP operations of API keys below /api/v1/agent.

Admins use createKey, listKeys and revokeKey. Agents use exchangeKey and renewKey.
"""

from sallyport.areas.tenancy.keys.bodies import (
    CreateKey,
    ExchangeKey,
    KeyKept,
    KeyList,
    KeyMade,
    ListKeys,
    RenewKey,
    RevokeKey,
)
from sallyport.areas.tenancy.keys.key import Configure, KeyRecord, NewKey
from sallyport.areas.tenancy.keys.service import Keys, renew_at
from sallyport.base.answer import answers
from sallyport.base.clock import Clock, iso, now_us
from sallyport.base.model import Done
from sallyport.store.model import ListQuery
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, AGENTS, DIRECTORY_AGENTS, ENROLMENTS, READERS, Caller, Gate


def operations(service: Keys, configure: Configure, gate: Gate, clock: Clock = now_us) -> Operations:
    """Return the HTTP operations of API keys."""
    keys = Operations("API keys", gate)
    _declare_for_admins(keys, service, configure, clock)
    _declare_for_agents(keys, service, clock)
    return keys


def _declare_for_admins(keys: Operations, service: Keys, configure: Configure, clock: Clock) -> None:
    @keys.post("/api/v1/agent/createKey", roles=ADMINS)
    async def create_key(body: CreateKey, caller: Caller) -> KeyMade:
        """Create an enrolment key for the agents of a domain, or for the agent of one instance. The key is shown only
        once.

        `agent`: endpoint or directory. `uses`: maximum number of machines that may use the key; no limit by default.
        The key expires at `expiresAt`, by default after 30 days.

        `configuration` in the answer is the text of the agent's configuration file. For a directory agent, add the
        password of the agent's directory account to this file.
        """
        new = NewKey(body.domainId, body.agent, body.instanceId, body.name or "", body.uses, body.expiresAt)
        record, key = await service.create(new)
        return KeyMade(
            message="API key created",
            keyId=record.id,
            apiKey=key,
            expiresAt=iso(record.expires_at),
            configuration=configure(record, key, body.model_dump()),
        )

    @keys.post("/api/v1/agent/listKeys", roles=READERS)
    async def list_keys(body: ListKeys, caller: Caller) -> Plain[KeyList]:
        """List the enrolment keys and the agents' own keys of a domain, ordered by id, without their secrets."""
        page = body.page()
        found, total = await service.page(ListQuery(body.domainId, page.offset, page.size))
        now = clock()
        entries = answers(found, now=now)
        return Plain({"code": 200, "status": "Success", "message": "Success", "totalCount": total, "keys": entries})

    @keys.post("/api/v1/agent/revokeKey", roles=ADMINS)
    async def revoke_key(body: RevokeKey, caller: Caller) -> Done:
        """Revoke a key. The service rejects the key from then on.

        After an enrolment key is revoked, the own keys of agents that have enrolled with it remain valid.
        """
        await service.revoke(body.domainId, body.keyId)
        return Done(message="API key revoked")


def _declare_for_agents(keys: Operations, service: Keys, clock: Clock) -> None:
    @keys.post("/api/v1/agent/exchangeKey", roles=ENROLMENTS)
    async def exchange_key(body: ExchangeKey, caller: Caller) -> KeyKept:
        """Register the agent's own key by its SHA-256. The request is authenticated by the enrolment key. A repeated
        request succeeds."""
        return _kept(await service.exchange(caller, body.keyHash, body.instanceId), clock())

    @keys.post("/api/v1/agent/renewKey", roles=AGENTS | DIRECTORY_AGENTS)
    async def renew_key(body: RenewKey, caller: Caller) -> KeyKept:
        """Register the agent's next key by its SHA-256. The request is authenticated by the agent's current key.

        The current key is deleted when the next key is first used.
        """
        return _kept(await service.renew(caller, body.keyHash), clock())


def _kept(key: KeyRecord, now: int) -> KeyKept:
    return KeyKept(
        message="API key kept",
        keyId=key.id,
        domainId=key.domain_id,
        instanceId=key.instance_id,
        expiresAt=iso(key.expires_at),
        renewAt=iso(renew_at(key)),
        now=iso(now),
    )
