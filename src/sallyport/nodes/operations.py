"""Local operations of nodes: node.list, node.forget."""

from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.text import existing
from sallyport.base.wire import JSON
from sallyport.nodes.node import Node
from sallyport.nodes.service import Cluster
from sallyport.shell.command import Arguments, LocalOperations


class Forget(Arguments):
    """Arguments of node.forget. name: the name of a node."""

    name: str


def local_operations(cluster: Cluster) -> LocalOperations:
    """Return the local operations of nodes by name."""
    local = LocalOperations()

    @local("node.list")
    async def listed() -> JSON:
        return [_row(each) for each in await cluster.everyone()]

    @local("node.forget")
    async def forget(wanted: Forget) -> JSON:
        if not await cluster.forget(wanted.name):
            names = [each.name for each in await cluster.everyone()]
            if wanted.name in names:
                raise Conflict(f"the node {wanted.name} is alive: stop it first")
            raise NotFound(f'node "{wanted.name}" not found{existing(wanted.name, names)}; see: sallyport node list')
        return None

    return local


def _row(node: Node) -> JSON:
    return {
        "name": node.name,
        "id": node.id,
        "state": "alive" if node.is_alive else f"silent for {node.silent_us // SECOND} s",
        "alive": node.is_alive,
        "version": node.version,
        "address": node.address,
        "started": iso(node.started_at),
        "leads": node.leads,
    }
