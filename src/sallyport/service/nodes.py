"""This node among the others: its membership in the cluster, the notices of other nodes, and the answers of the
console's slow actions."""

from collections.abc import Callable

from sallyport.areas.entrance import Parts
from sallyport.base.clock import Clock
from sallyport.nodes.answers import OwnAnswers, SharedAnswers, SlowAnswers
from sallyport.nodes.service import Cluster, Nodes, SingleNode
from sallyport.settings.settings import Settings
from sallyport.store.data_folder import installation_id
from sallyport.store.model import Engine
from sallyport.store.vault import Vault


def cluster_of(
    settings: Settings, store: Engine, vault: Vault, version: str, link_base: Callable[[], str], clock: Clock
) -> Cluster:
    """Return this node as a member of the cluster. With the embedded database, there are no other nodes."""
    if not store.is_shared:
        return SingleNode(settings.node, version, link_base, clock)
    return Nodes(
        store,
        settings.node,
        installation_id(settings.data_dir),
        version,
        lambda: vault.keys,
        link_base,
        names=settings.nodes,
        clock=clock,
    )


def answers_of(parts: Parts) -> SlowAnswers:
    """Return the object that exchanges the answers of the console's slow actions with other processes."""
    shared = parts.store.is_shared
    return SharedAnswers(parts.store, parts.cluster, parts.vault) if shared else OwnAnswers()
