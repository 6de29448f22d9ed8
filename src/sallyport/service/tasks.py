"""The periodic tasks of the service. Some tasks run on each node. Other tasks run for all nodes, on the node that has
the lease.

A node that was paused may believe that it still has the lease. Then a task of the second kind runs on two nodes at
once. If this could do harm, the transactions of the task check the lease. These tasks are retention by size, positions
of outlets, revocations, imports handed over by another node, silent agents and scheduled rotations.

The other tasks of the second kind may run on two nodes at the same time. Such a task changes a row only if no other
node has changed the row (directory schedules, mode reverts, sessions of restarted devices), or changes only rows that
are overdue.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from sallyport.service.app import App

Tasks: TypeAlias = tuple[Callable[[], Awaitable[object]], ...]


def of_node(app: App) -> Tasks:
    """Return the tasks that each node runs, to keep its data in memory up to date."""
    return (
        app.cluster.run,
        app.nodes.run,
        app.node_senders.run,
        app.follower.run,
        app.certificate_files.run,
        app.certificate_watch.run,
        app.devices.run,
        app.clients.run,
        app.configuration.watch,
        app.sessions.run,
        app.reverts.run,  # each node knows the deadlines, but only the node with the lease reverts
        app.logins.providers.run,
        app.logins.ntlm_auth.run,
        app.logins.lockouts.run,
        app.directory.jobs.run,  # the node's own files, and jobs without a file
        app.agents.states.run,
        app.agents.presence.run,
    )


def of_leader(app: App) -> Tasks:
    """Return the tasks that the node with the lease runs for all nodes."""
    return (
        app.retention.run,
        app.audit_retention.run,
        app.outlets.run,
        app.sessions.end,
        app.removal.run,
        app.revocations.run,
        app.directory.schedules.run,
        app.directory.handover.run,
        app.agents.presence.watch,
        app.agents.orders.run,
        app.agents.rotations.run,
        app.journal.purge,
    )
