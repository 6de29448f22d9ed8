"""The answers of the console's slow actions, for requests that reach another process than the one that runs the action.

Several workers and nodes serve one console. The page that waits for a slow action refreshes itself, and a refresh may
reach any of them. So a process writes each slow action into the table `console_answers`: first that it runs, then its
answer. The answer is sealed, because it may contain a secret that is shown once. There are few rows, and each is
deleted when its answer is fetched, or a short time afterwards.
"""

from typing import Final, Protocol

from sallyport.base.clock import SECOND
from sallyport.base.errors import SecretError
from sallyport.nodes import repo
from sallyport.nodes.service import Cluster
from sallyport.store.model import Engine, Tx
from sallyport.store.vault import Vault

KEPT_US: Final = 120 * SECOND
"""Time for which an answer is kept, in microseconds."""
MAX_SIZE: Final = 1 << 20
"""Maximum size of an answer that is written, in octets. A larger one is known only to the process that has made it."""


class SlowAnswers(Protocol):
    """The interface for the answers of slow actions of all processes. An answer is octets, which the console makes.
    session_id: the session of the console to which an action belongs. number: the id of the action."""

    async def put(self, session_id: int, number: str, answer: bytes | None) -> None:
        """Write that an action of this process runs, or its answer if it is complete. Raises StoreError."""

    async def take(self, session_id: int, number: str) -> bytes | None:
        """Return the answer of an action, and delete it. Return None while the action runs. Raises LookupError if there
        is no such action of the session, if its process has ended, or if the answer is larger than MAX_SIZE. Raises
        StoreError."""

    async def drop(self, number: str) -> None:
        """Delete an action whose answer was fetched from this process. Raises StoreError."""


class OwnAnswers:
    """The implementation for the embedded database, where this process is the only one."""

    async def put(self, session_id: int, number: str, answer: bytes | None) -> None:
        """Do nothing."""

    async def take(self, session_id: int, number: str) -> bytes | None:
        """Raise LookupError."""
        raise LookupError(number)

    async def drop(self, number: str) -> None:
        """Do nothing."""


class SharedAnswers:
    """The implementation for PostgreSQL. cluster: this node, which must have joined."""

    def __init__(self, store: Engine, cluster: Cluster, vault: Vault) -> None:
        self._store = store
        self._cluster = cluster
        self._vault = vault

    async def put(self, session_id: int, number: str, answer: bytes | None) -> None:
        if answer is not None and len(answer) > MAX_SIZE:
            await self.drop(number)
            return

        def transaction(tx: Tx) -> None:
            sealed = None if answer is None else self._vault.seal(answer, _identity(number))
            repo.forget_answers(tx, KEPT_US)
            repo.put_answer(tx, number, session_id, self._cluster.session, sealed)

        await self._store.write_aside(transaction)

    async def take(self, session_id: int, number: str) -> bytes | None:
        found = await self._store.read(lambda tx: repo.answer(tx, number, session_id))
        if found is None or (found.answer is None and not found.is_running):
            raise LookupError(number)
        if found.answer is None:
            return None
        await self.drop(number)
        try:
            return self._vault.open(found.answer, _identity(number))
        except SecretError as error:
            raise LookupError(number) from error

    async def drop(self, number: str) -> None:
        await self._store.write_aside(lambda tx: repo.drop_answer(tx, number))


def _identity(number: str) -> str:
    return f"console_answers/{number}/answer"
