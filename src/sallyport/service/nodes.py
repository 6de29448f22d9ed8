"""The connections between this node and the other nodes: its membership in the cluster, and the changes that other
nodes make."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sallyport.areas.login.listen import senders
from sallyport.areas.login.spool import Spool
from sallyport.areas.login.spool_file import paths_of
from sallyport.areas.tenancy.authentication import Guesses
from sallyport.base.wire import Row
from sallyport.metrics import SpoolMetrics
from sallyport.nodes.answers import OwnAnswers, SharedAnswers, SlowAnswers
from sallyport.nodes.follower import Follower
from sallyport.nodes.notices import NoNotices, Notices, SharedNotices
from sallyport.nodes.senders import NodeSenders, NoOtherNodes, SharedSenders
from sallyport.nodes.service import Alone, Cluster, Nodes
from sallyport.store.directory import installation_id
from sallyport.store.foreign import CERTIFICATES, CONFIGURATION, KEYS, PRINCIPALS, TOKENS, USERS

if TYPE_CHECKING:
    from sallyport.service.app import App


def cluster_of(app: App) -> Cluster:
    """Return this node as a member of the cluster. With the embedded database, there are no other nodes."""
    settings = app.settings

    def address() -> str:
        return settings.link_base(app.http_address)

    if not app.store.is_shared:
        return Alone(settings.node, app.version, address, app.clock)
    return Nodes(
        app.store,
        settings.node,
        installation_id(settings.data_dir),
        app.version,
        lambda: app.vault.keys,
        address,
        names=settings.nodes,
        clock=app.clock,
    )


def notices_of(app: App) -> Notices:
    """Return the object that exchanges notices with other nodes."""
    return SharedNotices(app.store, lambda: app.cluster.id) if app.store.is_shared else NoNotices()


def senders_of(app: App) -> NodeSenders:
    """Return the object that exchanges senders without an answer with other nodes."""
    if not app.store.is_shared:
        return NoOtherNodes()

    def rows(most: int) -> list[Row]:
        return senders.listed(app.senders, app.clients.table.find, app.cluster.name, most)

    return SharedSenders(app.store, app.cluster, app.settings.nodes, lambda: app.senders.changes, rows)


def answers_of(app: App) -> SlowAnswers:
    """Return the object that exchanges the answers of the console's slow actions with other processes."""
    return SharedAnswers(app.store, app.cluster, app.vault) if app.store.is_shared else OwnAnswers()


def guesses_of(app: App, kind: str, *, burst: int) -> Guesses:
    """Return the rate limit for wrong keys of one kind. A wrong key counts on every node, whichever node has received
    it.

    kind: the name of the kind.
    """
    notice = f"wrong_{kind}"
    guesses = Guesses(burst=burst, tell=partial(app.notices.send, notice))
    app.notices.receive(notice, lambda values, age_us: guesses.count(str(values[0]), app.clock() - age_us))
    return guesses


def follower_of(app: App) -> Follower:
    """Return the follower, which drops data from memory after another node has changed the data."""

    def users_changed(domain_id: int) -> None:
        if domain_id:
            app.users.forget_domain(domain_id)
        else:
            app.users.forget()
        for each in [domain_id] if domain_id else app.domains.table.by_id:
            app.logins.second.enrolments.forget(each, None)

    return Follower(
        app.store,
        {
            CONFIGURATION: lambda _domain_id: app.configuration.look(),
            USERS: users_changed,
            TOKENS: lambda _domain_id: app.tenancy.forget(),
            KEYS: lambda _domain_id: app.keys.forget(),
            PRINCIPALS: app.directory.principals.changed_elsewhere,
            CERTIFICATES: lambda _domain_id: app.certificate_files.changed(),
        },
        app.restored,
    )


def spool_of(app: App) -> Spool | None:
    """Return the spool of accounting records, or None with the embedded database.

    A spool next to the embedded database would be useless, because it would be on the same disk.
    """
    if not app.store.is_shared:
        return None
    settings = app.settings
    own, left = paths_of(settings.data_dir, settings.worker, settings.workers)
    return Spool(
        app.store,
        own,
        settings.accounting_spool_mib << 20,
        SpoolMetrics(app.registry),
        app.devices.count_written,
        app.sessions.count_records,
        left,
    )


async def nodes_without_key(app: App, version: int) -> list[str]:
    """Return the names of the other live nodes whose master key is older than this version. Raises StoreError."""
    return [
        each.name
        for each in await app.cluster.everyone()
        if each.is_alive and each.id != app.cluster.id and each.key_version < version
    ]
