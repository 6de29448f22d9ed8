"""The verifier's side of presentation requests. The verifier asks one holder, or all holders of a group, for a
credential that gives access to an endpoint."""

import secrets
from dataclasses import dataclass
from typing import Final

from sallyport.areas.did.credentials.credential import Holder
from sallyport.areas.did.credentials.repo import holder_of_user, users_of_holder, wallet_of_holder
from sallyport.areas.did.dids import repo as dids
from sallyport.areas.did.dids.did import DidKind
from sallyport.areas.did.dids.repo import NO_ISSUER
from sallyport.areas.did.peers import AccessTarget, AccessTargets
from sallyport.areas.did.presentations import definition, repo
from sallyport.areas.did.presentations.request import NewRequest
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Conflict, Invalid, NotFound
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import Store, Tx

LIFE_S: Final = 600
"""Time for which a request is open, unless the endpoint's credential policy sets a shorter time."""
MAX_HOLDERS: Final = 500
NONCE_OCTETS: Final = 24
BY_DID: Final = "DID"


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """A call of issuePR. username: the epmUsername that the credential must have; empty for any epmUsername. of_group:
    whether `endpoint` is a group, and all holders of the group are asked."""

    issuer_did: str
    holder_did: str
    username: str
    endpoint: str
    of_group: bool


@dataclass(frozen=True, slots=True)
class IssuedRequest:
    """An issued request."""

    id: int
    holder: Holder


class Verifier:
    """Issues presentation requests, for all tenants."""

    def __init__(self, store: Store, targets: AccessTargets, clock: Clock = now_us) -> None:
        self._store = store
        self._targets = targets
        self._clock = clock

    async def issue(self, tenant_id: int, wanted: AccessRequest) -> list[IssuedRequest]:
        """Ask a holder, or all holders of a group, for a credential of the issuer. Raises NotFound if the issuer,
        the endpoint or the holder does not exist. Raises Conflict if the endpoint does not accept DIDs, or grants no
        access."""
        at = self._clock()

        def transaction(tx: Tx) -> list[IssuedRequest]:
            issuer = dids.of_tenant(tx, tenant_id, wanted.issuer_did, DidKind.ISSUER)
            if issuer is None:
                raise NotFound(NO_ISSUER)
            domain_id = issuer.domain_id
            target = self._target(tx, tenant_id, domain_id, wanted)
            holders = self._holders(tx, domain_id, target, wanted, at)
            issued = [
                IssuedRequest(repo.add(tx, _request(domain_id, wanted.issuer_did, holder, target, at), at), holder)
                for holder in holders
            ]
            changes: dict[str, JSON] = {"issuer": wanted.issuer_did, "holders": [each.holder_did for each in holders]}
            audit.record_in(tx, "presentation.request", domain_id, f"endpoint {target.name}", changes, at=at)
            return issued

        return await self._store.write(transaction)

    def _target(self, tx: Tx, tenant_id: int, domain_id: int, wanted: AccessRequest) -> AccessTarget:
        target = self._targets.find(tx, tenant_id, domain_id, wanted.endpoint, group=wanted.of_group)
        if target is None:
            raise NotFound("group not found" if wanted.of_group else "endpoint not found")
        if not target.is_active:
            raise Conflict("the group is not active: activate it first")
        names = [wanted.username] if wanted.username else users_of_holder(tx, domain_id, wanted.holder_did)
        if not target.admits(tx, BY_DID, names):
            raise Conflict("the endpoint does not accept DIDs: add DID to its authType")
        return target

    def _holders(self, tx: Tx, domain_id: int, target: AccessTarget, wanted: AccessRequest, at: int) -> list[Holder]:
        """Return the holders to ask, without duplicates. Raises NotFound."""
        if not wanted.of_group:
            wallet_id = wallet_of_holder(tx, domain_id, wanted.holder_did)
            if wallet_id is None:
                raise NotFound("holder not found")
            return [Holder(wallet_id, wanted.holder_did, wanted.username)]
        members = self._targets.members(tx, target.id)
        if len(members) > MAX_HOLDERS:
            raise Invalid.about(
                f"a request can be sent to at most {MAX_HOLDERS} users, but the group has more", "endpoint"
            )
        holders = (holder_of_user(tx, each.domain_id, each.name, wanted.issuer_did, 0, at) for each in members)
        found = list(dict.fromkeys(holder for holder in holders if holder is not None))
        if not found:
            raise NotFound("no user of the group holds a credential of this issuer")
        return found


def _request(domain_id: int, issuer_did: str, holder: Holder, target: AccessTarget, at: int) -> NewRequest:
    life_s = LIFE_S if target.session_s is None else min(LIFE_S, target.session_s)
    purpose = f"Access to {target.name}" + f" as {holder.username}" * bool(holder.username)
    return new_request(
        domain_id, issuer_did, 0, holder, purpose=purpose, endpoint=target.name, expires_at=at + life_s * SECOND
    )


def new_request(
    domain_id: int,
    issuer_did: str,
    schema_id: int,
    holder: Holder,
    *,
    purpose: str,
    expires_at: int,
    schema_url: str = "",
    endpoint: str = "",
    challenge_id: str | None = None,
) -> NewRequest:
    """Return a request for a credential of the issuer.

    If the holder's credential or user name is known, the request asks for exactly this credential or user name.
    Otherwise the request accepts any credential with an epmUsername. schema_url: the URL of the credential's schema;
    empty for any schema.
    """
    wanted: dict[str, JSON] = {"$.issuer": issuer_did}
    if holder.credential:
        wanted["$.id"] = holder.credential
    if schema_url:
        wanted["$.credentialSchema.id"] = schema_url
    if holder.username or not holder.credential:
        wanted["$.credentialSubject.epmUsername"] = holder.username or None
    asked = definition.for_credential("Credential", purpose, wanted)
    return NewRequest(
        domain_id,
        holder.wallet_id,
        holder.holder_did,
        issuer_did,
        schema_id,
        secrets.token_urlsafe(NONCE_OCTETS),
        asked.text,
        purpose,
        endpoint,
        challenge_id,
        expires_at,
    )
