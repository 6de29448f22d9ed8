"""Rotation of an account's password. The service stores each password before the password becomes valid.

    make      generate a password and its hash; write the hash to the journal
    escrow    send the password to the service, which stores it; record the service's answer in the journal
    change    write the hash to shadow(5)
    verify    read shadow(5) and check that it contains the hash
    confirm   tell the service that the new password is valid; delete the journal

The journal is a file that contains at most one rotation. After a crash, `reconcile` reads the journal. If the service's
answer is not in the journal, nothing has changed on the host, and `reconcile` abandons the rotation. If the answer is
in the journal, `reconcile` completes the rotation with the hash in the journal. The password itself is never on the
host's disk.
"""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from sallyport.agent.endpoint.accounts import Account, read
from sallyport.agent.endpoint.executor import Executor
from sallyport.agent.endpoint.memory import ANYBODY, digest
from sallyport.agent.endpoint.service import Service
from sallyport.agentwire.fields import HASH, Name, Number
from sallyport.agentwire.report import Action, Phase, Rotation
from sallyport.agentwire.state import Rules
from sallyport.base.errors import ConfigError, HostError, ServiceAway, ServiceRefused, WireError
from sallyport.base.wire import Text, decode, dumps, loads
from sallyport.host import disk

_MAX_OCTETS: Final = 10_000
KIND: Final = "rotate"


class Stage(StrEnum):
    """The last step of a rotation that the journal records. After a crash, the following step may have been carried out
    too, although the journal does not record it."""

    MADE = "made"
    ESCROWED = "escrowed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A rotation in the journal. trigger: the id of the order. hash: the hash of the new password in the form of
    shadow(5)."""

    id: Annotated[str, Text(64, "[A-Za-z0-9_-]{8,}")]
    user: Name
    stage: Stage
    trigger: Number
    hash: Annotated[str, Text(512, HASH)] = field(repr=False)


class Journal:
    """The file that records an unfinished rotation. write: a function that replaces a file atomically."""

    def __init__(self, path: Path, write: Callable[[Path, bytes], None] = disk.write) -> None:
        self._path = path
        self._write = write

    def read(self) -> JournalEntry | None:
        """Return the unfinished rotation, or None if there is none. Raises ConfigError if the file is invalid."""
        try:
            return decode(JournalEntry, loads(self._path.read_bytes(), most=_MAX_OCTETS))
        except FileNotFoundError:
            return None
        except (OSError, WireError) as error:
            raise ConfigError(f"{self._path}: {error}") from None

    def put(self, entry: JournalEntry) -> None:
        """Store a rotation. When this method returns, the rotation is on disk. Raises ConfigError."""
        self._write(self._path, dumps(entry) + b"\n")

    def end(self) -> None:
        """Delete the journal after its rotation has ended. Raises ConfigError."""
        try:
            self._path.unlink(missing_ok=True)
            disk.sync(self._path.parent)
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror}") from None


class Rotator:
    """A rotator of account passwords. It rotates one password at a time."""

    def __init__(self, executor: Executor, journal: Journal, service: Service) -> None:
        self._executor = executor
        self._journal = journal
        self._service = service

    def rotate(self, user: str, trigger: int, policies: Sequence[Rules]) -> None:
        """Give an account a new password. Call `reconcile` first, so that no other rotation is unfinished.

        trigger: the id of the order. Raises HostError if the new password was not set on the host. Raises
        ServiceRefused if the service has not stored the new password; the old password then remains valid. Raises
        ServiceAway if the outcome is unknown; the next call of `reconcile` finds out. Raises ConfigError.
        """
        from sallyport.agent.endpoint.passwords import (
            generate,  # imported here: rarely used, and slow to import
            hash_password,
            matches,
        )

        account = self._own(user)
        if account.locked:
            raise HostError("the account is locked")
        password = generate(policies, user)
        hashed = hash_password(password, read(self._executor.files).hash_method)
        if not matches(password, hashed):
            raise HostError("the host's crypt(3) does not verify a hash of its own")
        entry = JournalEntry(secrets.token_urlsafe(16), user, Stage.MADE, trigger, hashed)
        self._journal.put(entry)
        message = Rotation(entry.id, user, Phase.ESCROW, trigger, password=password, password_hash=hashed)
        try:
            self._service.rotation(message)
        except ServiceRefused:
            self._abandon(entry, "the service did not accept the password")
            raise
        self._finish(entry)

    @property
    def unended(self) -> str:
        """Return the user whose rotation is in the journal. Return an empty text if the journal has no rotation, and
        ANYBODY if the journal is invalid."""
        try:
            entry = self._journal.read()
        except ConfigError:
            return ANYBODY
        return "" if entry is None else entry.user

    def reconcile(self) -> Action | None:
        """Complete or abandon the rotation in the journal. Return the outcome, or None if the journal has no rotation.

        Raises ServiceAway, or HostError if the host does not accept the password; in both cases, call this method again
        later. Raises ConfigError if the journal is invalid or cannot be written.
        """
        entry = self._journal.read()
        if entry is None:
            return None
        if entry.stage is Stage.MADE:
            self._abandon(entry, "the agent was interrupted before the service stored the password")
            return Action(KIND, entry.user, error="the rotation was interrupted; the old password remains valid")
        self._finish(entry)
        return Action(KIND, entry.user, "completed after an interruption")

    def _finish(self, entry: JournalEntry) -> None:
        """Complete a rotation whose escrow the service has acknowledged."""
        if entry.stage is Stage.MADE:
            entry = replace(entry, stage=Stage.ESCROWED)
            self._journal.put(entry)
        if entry.stage is Stage.ESCROWED:
            account = read(self._executor.files).users.get(entry.user)
            if account is None or account.password.removeprefix("!") != entry.hash:
                if account is None or account.locked:
                    self._abandon(entry, "the account does not exist or is locked")
                    raise HostError("the account does not exist or is locked")
                self._executor.put_password(entry.user, entry.hash)
            entry = replace(entry, stage=Stage.CHANGED)
            self._journal.put(entry)
        try:
            self._service.rotation(Rotation(entry.id, entry.user, Phase.CONFIRM, entry.trigger))
        except ServiceRefused as error:
            # The service does not have the valid password any more, so another rotation is necessary. The trigger is
            # still open and causes it. The daemon waits before it: longer after each failure.
            self._journal.end()
            raise ServiceAway(
                f"the service did not accept the confirmation of the new password, so another rotation follows: {error}"
            ) from None
        kept = self._executor.memory.now.of(entry.user)
        if kept is not None:
            self._executor.memory.keep(replace(kept, own=digest(entry.hash)))
        self._journal.end()

    def _abandon(self, entry: JournalEntry, reason: str) -> None:
        """Abandon a rotation whose password was never valid. Raises ServiceAway if the service cannot be reached. In
        this case, `reconcile` must be called again later."""
        with suppress(ServiceRefused):  # the service does not have this password
            self._service.rotation(Rotation(entry.id, entry.user, Phase.ABANDON, entry.trigger, reason=reason))
        self._journal.end()

    def _own(self, user: str) -> Account:
        accounts = read(self._executor.files)
        account = accounts.users.get(user)
        if account is None or self._executor.memory.now.owns(accounts, account) is None:
            raise HostError("the agent does not manage this account")
        return account
