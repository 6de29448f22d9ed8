"""The service for RADIUS clients: it changes, imports and searches them."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final

import structlog
import trio

from sallyport.areas.clients import repo
from sallyport.areas.clients.activity import NEVER, Heard, Times, times_of
from sallyport.areas.clients.changes import CERTIFICATE, check_certificate, check_ranges, record, target_of
from sallyport.areas.clients.client import (
    Client,
    ClientTable,
    State,
    check_mac_forms,
    finder,
)
from sallyport.areas.clients.latches import Latches
from sallyport.areas.clients.plan import Action, Step, Wanted, plan
from sallyport.areas.clients.repo import Change, NewRow
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Conflict, Forbidden
from sallyport.base.fair import FairLimiter
from sallyport.base.secret import new_shared_secret
from sallyport.base.tags import MAX_CHARACTERS, NO_TAGS, Tags, as_stored, changed_tags, folded_tag, is_selected
from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.radius.duplicates import Source
from sallyport.radius.dynamic import PORT
from sallyport.store import audit
from sallyport.store.model import Tx, Value, Work
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault
from sallyport.web.scope import ADMINS, Role, not_allowed

log = structlog.get_logger()

IMPORTED: Final = 100
"""Maximum number of imported clients in one transaction; each takes up to 0.3 ms."""
SEARCHING: Final = 1
"""Maximum number of searches at the same time. All threads share one interpreter lock, so several searches would delay
logins."""
DAY_US: Final = 86_400 * SECOND
TRUST: Final = frozenset(
    {
        "domainIds", "limitProxyState", "macForms", "macPassword", "passwordVerified", "requireMessageAuthenticator",
        "secret", "shadow", "tags", "tlsFingerprint", "tlsName",
    }
)  # fmt: skip
"""The fields that decide which packets are trusted, or which rules apply. A change of them requires the role admin."""


@dataclass(frozen=True, slots=True)
class NewClient:
    """A RADIUS client to add.

    domain_ids: the ids of the client's domains, the default first. If empty, the client has all domains of the tenant.
    mac_forms: as `joined_forms` returns them. mac_password: the password of all stations; empty if there is none.
    """

    name: str
    network: str
    secret: bytes | None = None
    domain_ids: tuple[int, ...] = ()
    product: str = ""
    require_message_authenticator: str = "auto"
    limit_proxy_state: str = "auto"
    password_verified: bool = False
    coa_port: int = PORT
    tls_name: str = ""
    tls_fingerprint: str = ""
    mac_forms: str = ""
    mac_password: bytes = b""
    tags: Tags = NO_TAGS
    note: str = ""
    shadow: bool = False


class Clients:
    """The RADIUS clients of all tenants, in memory. When a method that changes a client returns, the change has taken
    effect."""

    def __init__(
        self,
        configuration: Configuration,
        vault: Vault,
        tenant_of_domain: Callable[[int], int | None],
        clock: Clock = now_us,
    ) -> None:
        self._configuration = configuration
        self._vault = vault
        self._tenant_of_domain = tenant_of_domain
        self._clock = clock
        self._turns: FairLimiter[int] = FairLimiter(SEARCHING)
        self.latches = Latches(configuration, clock)
        self._table = configuration.hold(self._load, ClientTable(), self.latches.carry_over)
        self.find = finder(self._table)

    def _load(self, tx: Tx) -> ClientTable:
        return repo.load(tx, self._vault, self.table)

    async def changed(self, client_id: int) -> Client:
        """Return a client after a change, also if the change waits for the end of an apply. Raises NotFound,
        StoreError."""
        return (await self._configuration.current(self._table)).present(client_id)

    @property
    def table(self) -> ClientTable:
        """The table of all clients. A reload replaces the table."""
        return self._table.value

    def owner(self, source: Source) -> int:
        """Return the tenant id of the client with the source address of a datagram, or 0 if the address is unknown."""
        client = self.find(source)
        return 0 if client is None else client.tenant_id

    def certificate_tenant(self, fingerprint: str) -> int | None:
        """Return the id of the tenant that a certificate was issued for, or None. fingerprint: the SHA-256 of the
        certificate in hex."""
        return self.table.issued.by_fingerprint.get(fingerprint)

    def of_tenant(self, tenant_id: int) -> Sequence[Client]:
        """Return a tenant's clients, ordered by id."""
        return self.table.of_tenant(tenant_id)

    def tags_of(self, client_id: int) -> Tags:
        """Return the tags of a client. A client that does not exist has none."""
        found = self.table.by_id.get(client_id)
        return NO_TAGS if found is None else found.tags

    def with_tag(self, tenant_id: int, folded: str) -> list[int]:
        """Return the ids of the tenant's clients that a wanted tag selects. Any thread may call this method. folded: as
        `folded_tag` returns it."""
        return [client.id for client in self.of_tenant(tenant_id) if is_selected(client.tags, folded)]

    async def search(self, tenant_id: int, text: str, tag: str = "") -> Sequence[Client]:
        """Return a tenant's clients whose name, address or product contains a text, ordered by id. tag: a tag in
        canonical form that selects the clients; empty for all."""
        own = self.of_tenant(tenant_id)
        if not text and not tag:
            return own
        async with self._turns.slot(tenant_id):
            return await trio.to_thread.run_sync(_containing, own, text, tag)

    async def activity(
        self, tenant_id: int, heard: Sequence[Heard], state: State | None = None, ids: Collection[int] = ()
    ) -> list[tuple[Client, Times]]:
        """Return a tenant's clients and when each has sent requests, ordered by id.

        heard: when each source address of the tenant has sent requests. state: return only the clients in this state.
        ids: return only the clients with these ids; all clients if there are none.
        """
        day_ago, chosen = self._clock() - DAY_US, frozenset(ids)

        def select() -> list[tuple[Client, Times]]:
            times = times_of(self.table, heard)
            return [
                (client, each)
                for client in self.of_tenant(tenant_id)
                for each in [times.get(client.id, NEVER)]
                if (state is None or each.is_in(state, day_ago)) and (not chosen or client.id in chosen)
            ]

        async with self._turns.slot(tenant_id):
            return await trio.to_thread.run_sync(select)

    async def add(self, tenant_id: int, new: NewClient, *, by: Role | None = None) -> tuple[int, bytes]:
        """Add a client, and return its id and its secret. If `new` has no secret, a secret is generated.

        by: the role of the tenant's token, or None for the installation's administrator.

        Raises Conflict if the name, the address or the certificate is taken. Raises Forbidden if a domain belongs to
        another tenant, or if only the installation's administrator may set the network or the certificate.
        """
        (added,) = await self.add_all(tenant_id, [new], by=by)
        return added

    async def add_all(
        self, tenant_id: int, clients: Sequence[NewClient], *, by: Role | None = None
    ) -> list[tuple[int, bytes]]:
        """Add several clients, and return the id and the secret of each. If a client cannot be added, none is added.
        See `add`."""
        for new in clients:
            self._check_domains(tenant_id, new.domain_ids)
        await self._check_room(tenant_id, sum(len(as_stored(new.tags)) + len(new.note) for new in clients))
        rows = await trio.to_thread.run_sync(new_rows, clients)

        def transaction(tx: Tx) -> list[tuple[int, bytes]]:
            check_ranges(tx, tenant_id, [row.network for row in rows], by)
            for row in rows:
                check_certificate(tx, tenant_id, row.settings, by)
            return self._add(tx, tenant_id, rows)

        return await self._configuration.change(transaction)

    def _add(self, tx: Tx, tenant_id: int, rows: Sequence[NewRow]) -> list[tuple[int, bytes]]:
        at = self._clock()
        added = list(zip(repo.add_all(tx, self._vault, tenant_id, rows, at), rows, strict=True))
        entries = [(target_of(client_id, row.settings["name"]), row.changes) for client_id, row in added]
        audit.record_all(tx, "client.add", entries, at=at, tenant_id=tenant_id)
        return [(client_id, row.secret) for client_id, row in added]

    async def _check_room(self, tenant_id: int, growth: int) -> None:
        """Raise Conflict if the tags and notes of a tenant's clients would be too long in all. growth: the number of
        additional characters."""
        if growth > 0:
            async with self._turns.slot(tenant_id):
                present = await trio.to_thread.run_sync(_characters, self.of_tenant(tenant_id))
            _check_characters(present + growth)

    def plan(self, tenant_id: int, wanted: Sequence[Wanted]) -> list[Step]:
        """Return the plan of an import. Raises Forbidden if a domain belongs to another tenant."""
        for each in wanted:
            self._check_domains(tenant_id, each.domain_ids or ())
        return plan(wanted, tenant_id, self.table)

    async def carry_out(self, tenant_id: int, steps: Sequence[Step]) -> None:
        """Apply the steps of a plan, at most IMPORTED in one transaction. Refused steps are skipped.

        Raises Conflict if another client has taken a name or an address since the plan was made. The steps of earlier
        transactions then stay applied; a new plan contains only the others.
        """
        due = [step for step in steps if step.action in (Action.CHANGED, Action.NEW)]

        def parts() -> list[Work[None]]:
            return [self._part(tenant_id, due[start : start + IMPORTED]) for start in range(0, len(due), IMPORTED)]

        await self._configuration.change_in_parts(await trio.to_thread.run_sync(parts))

    def _part(self, tenant_id: int, steps: Sequence[Step]) -> Work[None]:
        """Prepare the steps of one transaction, and return the function that applies them."""
        changed = [step for step in steps if step.action is Action.CHANGED]
        changes = [Change(step.client_id, step.columns or {}, step.secret, step.domain_ids) for step in changed]
        moved = [ip_network(step.wanted.network) for step in changed if "network" in (step.columns or {})]
        rows = new_rows(_new(step.wanted) for step in steps if step.action is Action.NEW)

        def transaction(tx: Tx) -> None:
            check_ranges(tx, tenant_id, [*moved, *(row.network for row in rows)], None)
            self._update(tx, tenant_id, changes)
            self._add(tx, tenant_id, rows)

        return transaction

    async def update(
        self,
        tenant_id: int,
        client_id: int,
        changes: dict[str, Value],
        *,
        secret: bytes | None = None,
        domain_ids: Sequence[int] | None = None,
        mac_password: bytes | None = None,
        tags: Sequence[str] | None = None,
        by: Role | None = None,
    ) -> Client:
        """Change a client, and return it. Fields that are not in `changes` keep their values. Raises NotFound,
        Conflict, Forbidden, Invalid.

        changes: the new values by column. tags: the tags to change; see `changed_tags`. If it is empty, all tags are
        removed. by: see `add`.
        """
        self._check_domains(tenant_id, domain_ids or ())
        present = self.table.by_id.get(client_id)
        if present is not None and present.tenant_id == tenant_id and (tags or "note" in changes):
            after = as_stored(present.tags if tags is None else changed_tags(present.tags, tags) if tags else NO_TAGS)
            await self._check_room(
                tenant_id, len(after) + len(str(changes.get("note", present.note))) - _characters([present])
            )

        def transaction(tx: Tx) -> None:
            former = repo.described(tx, tenant_id, client_id)
            if tags is not None:
                changes["tags"] = as_stored(repo.tags_after(tx, client_id, tags))
            fields: dict[str, object] = {repo.API_NAMES[c]: repo.as_json(c, value) for c, value in changes.items()}
            if domain_ids is not None:
                fields["domainIds"] = list(dict.fromkeys(domain_ids))
            if secret is not None:
                fields["secret"] = audit.HIDDEN
            if mac_password is not None:
                fields["macPassword"] = audit.HIDDEN
            changed = {name for name, value in fields.items() if value != former.get(name)}
            if by is not None and by not in ADMINS and changed & TRUST:
                raise not_allowed(by, ADMINS)
            if "address" in changed:
                check_ranges(tx, tenant_id, [ip_network(str(changes["network"]))], by)
            certificate = {column: changes[column] for column in CERTIFICATE if repo.API_NAMES[column] in changed}
            check_certificate(tx, tenant_id, certificate, by)
            self._update(tx, tenant_id, [Change(client_id, changes, secret, domain_ids, mac_password)])

        await self._configuration.change(transaction)
        return await self.changed(client_id)

    def _update(self, tx: Tx, tenant_id: int, changes: Sequence[Change]) -> None:
        entries = []
        for change, changed in zip(changes, repo.update_all(tx, self._vault, tenant_id, changes), strict=True):
            secrets = {"secret": change.secret, "macPassword": change.mac_password}
            hidden: dict[str, JSON] = {
                name: [audit.HIDDEN, audit.HIDDEN] for name, value in secrets.items() if value is not None
            }
            if fields := changed.fields | hidden:
                entries.append((target_of(change.client_id, changed.name), audit.as_kept(fields)))
        audit.record_all(tx, "client.update", entries, at=self._clock(), tenant_id=tenant_id)

    async def delete(self, tenant_id: int, client_id: int) -> None:
        """Remove a client. The client's next request is dropped. Raises NotFound."""
        await self._configuration.change(lambda tx: self._delete(tx, tenant_id, client_id))

    def _delete(self, tx: Tx, tenant_id: int, client_id: int) -> None:
        removed = repo.described(tx, tenant_id, client_id)
        repo.delete(tx, tenant_id, client_id)
        record(tx, "client.delete", tenant_id, client_id, self._clock(), before=removed)

    # --- in the transaction of a caller -----------------------------------------------------------------------

    def read(self, tx: Tx, tenant_id: int) -> Sequence[Client]:
        """Return a tenant's clients as the store has them, ordered by id."""
        return self._load(tx).of_tenant(tenant_id)

    def write(
        self, tx: Tx, tenant_id: int, rows: Sequence[NewRow], changes: Sequence[Change], removed: Sequence[int]
    ) -> None:
        """Remove clients, change others, and add new ones, as the installation's administrator. Raises NotFound,
        Conflict, Invalid. removed: the ids of clients."""
        for client_id in removed:
            self._delete(tx, tenant_id, client_id)
        networks = [ip_network(str(each.columns["network"])) for each in changes if "network" in each.columns]
        check_ranges(tx, tenant_id, [*networks, *(row.network for row in rows)], None)
        for columns in [*(each.columns for each in changes), *(row.settings for row in rows)]:
            check_certificate(tx, tenant_id, columns, None)
        self._update(tx, tenant_id, changes)
        self._add(tx, tenant_id, rows)
        _check_characters(repo.characters(tx, tenant_id))

    def _check_domains(self, tenant_id: int, domain_ids: Sequence[int]) -> None:
        if any(self._tenant_of_domain(domain_id) != tenant_id for domain_id in domain_ids):
            raise Forbidden("domain not in tenant")


def _check_characters(count: int) -> None:
    """Raise Conflict if the tags and notes of a tenant's clients are too long in all."""
    if count > MAX_CHARACTERS:
        raise Conflict(f"the tags and notes of a tenant's clients can have at most {MAX_CHARACTERS} characters")


def _characters(clients: Iterable[Client]) -> int:
    """Return the number of characters of the tags and notes of clients."""
    return sum(len(as_stored(client.tags)) + len(client.note) for client in clients)


def _containing(clients: Iterable[Client], text: str, tag: str) -> list[Client]:
    folded, wanted = fold(text), folded_tag(tag)
    return [client for client in clients if client.contains(folded) and (not tag or is_selected(client.tags, wanted))]


def new_rows(clients: Iterable[NewClient]) -> list[NewRow]:
    """Prepare the rows of new clients before the transaction, to keep the transaction short."""
    rows = []
    for new in clients:
        network = ip_network(new.network)
        settings: dict[str, str | int] = {column: getattr(new, column) for column in repo.API_NAMES}
        settings |= {"network": str(network), "password_verified": int(new.password_verified)}
        settings["shadow"] = int(new.shadow)
        settings["tags"] = as_stored(new.tags)
        check_mac_forms(new.mac_forms, network, given=bool(new.mac_password))
        after: dict[str, JSON] = {**repo.api_fields(settings, new.domain_ids), "secret": audit.HIDDEN}
        after |= {"macPassword": audit.HIDDEN} if new.mac_password else {}
        secret = new.secret or new_shared_secret().encode()
        changes = audit.as_kept(audit.changed({}, after))
        rows.append(NewRow(network, settings, secret, new.domain_ids, changes, new.mac_password))
    return rows


def _new(wanted: Wanted) -> NewClient:
    return NewClient(
        name=wanted.name,
        network=wanted.network,
        secret=wanted.secret,
        domain_ids=wanted.domain_ids or (),
        product=wanted.product or "",
        require_message_authenticator=wanted.require_message_authenticator,
        limit_proxy_state=wanted.limit_proxy_state,
        tags=changed_tags(NO_TAGS, wanted.tags),
    )
