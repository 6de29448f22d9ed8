"""The settings of RADIUS clients that the service learns from authentic requests (see `Client.latch`)."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import structlog

from sallyport.areas.clients import repo
from sallyport.areas.clients.changes import record
from sallyport.areas.clients.client import LIMITED, SIGNED, Client, ClientTable, Signatures
from sallyport.base.clock import Clock
from sallyport.base.errors import StoreError
from sallyport.nodes.periodic import every
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration

log = structlog.get_logger()

STORE_S: Final = 1.0
AT_ONCE: Final = 32
"""Maximum number of learned settings in one transaction; each takes up to 0.15 ms."""


class Latches:
    """The learned settings of all clients. A setting applies at once, and is stored within a second."""

    def __init__(self, configuration: Configuration, clock: Clock) -> None:
        self._configuration = configuration
        self._clock = clock
        self._learned: list[tuple[Client, str]] = []
        self._stored: list[tuple[Client, str]] = []

    def latch(self, client: Client, what: str) -> None:
        """Apply a setting that the service has learned from an authentic request of the client. The setting applies at
        once, and stays in force after a reload. `run` stores the setting later.

        what: SIGNED or LIMITED; see `Client.latch`.
        """
        client.latch(what)
        self._learned.append((client, what))

    async def run(self) -> None:
        """Store learned settings once a second, until cancelled.

        The settings are stored in batches, because the service may learn about thousands of clients soon after a start.
        """
        await every(STORE_S, self.store, failure="radius_client_latches_not_stored")

    async def store(self) -> None:
        """Store learned settings. No reload is needed, because the settings already apply in memory.

        Raises StoreError if the store fails. The settings then stay in memory, and the next call stores them.
        """
        if self._learned:
            self._stored = []
        while self._learned:
            part, self._learned = self._learned[:AT_ONCE], self._learned[AT_ONCE:]
            self._stored += part  # a concurrent reload may miss this write, so `carry_over` applies them again
            try:
                await self._configuration.store.write(partial(_store, part=part, at=self._clock()))
            except StoreError:
                self._learned = [each for each in part if each in self._stored] + self._learned
                raise
            for client, what in part:
                log.info("radius_client_latched", client=client.name, what=what)

    def carry_over(self, table: ClientTable) -> None:
        """Apply the learned settings to the clients of a reloaded table. Drop a learned setting if the client's setting
        is no longer `auto`."""
        self._stored = [each for each in self._stored if _applies(*each, table)]
        self._learned = [each for each in self._learned if _applies(*each, table)]
        for client, what in (*self._stored, *self._learned):
            table.by_id[client.id].latch(what)

    def _drop(self, client_id: int) -> None:
        self._stored = [each for each in self._stored if each[0].id != client_id]
        self._learned = [each for each in self._learned if each[0].id != client_id]

    async def unlatch(self, client: Client) -> None:
        """Reset both learned settings of a client. The service may learn them again. Raises NotFound."""
        self._drop(client.id)
        at = self._clock()

        def transaction(tx: Tx) -> None:
            before = repo.described(tx, client.tenant_id, client.id)
            for what in (SIGNED, LIMITED):
                repo.learn(tx, client, what, None)
            repo.remember(tx, client, "unlatched", at)
            after = repo.described(tx, client.tenant_id, client.id)
            record(tx, "client.unlatch", client.tenant_id, client.id, at, before=before, after=after)

        await self._configuration.change(transaction, urgent=True)


def _store(tx: Tx, part: Sequence[tuple[Client, str]], at: int) -> None:
    for client, what in part:
        if repo.learn(tx, client, what, at):
            repo.remember(tx, client, what, at)
            after = repo.described(tx, client.tenant_id, client.id)
            before = {**after, repo.LEARNED[what]: False}
            record(tx, "client.latch", client.tenant_id, client.id, at, before=before, after=after)


def _applies(client: Client, what: str, table: ClientTable) -> bool:
    now = table.by_id.get(client.id)
    if now is None:
        return False
    return (now.require_message_authenticator if what == SIGNED else now.limit_proxy_state) is Signatures.AUTO
