"""Read the directory, send its entries to the service, and repeat this in a loop."""

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import structlog
import trio

from sallyport.agent.directory.sender import BatchSender
from sallyport.agent.directory.settings import DirectorySettings
from sallyport.agent.keys import KeyRing
from sallyport.agent.service import ServiceClient
from sallyport.areas.directory.entry import wire
from sallyport.areas.directory.entry.entry import Batch, Entry
from sallyport.areas.directory.reading.reader import LdapReader
from sallyport.base.clock import SECOND, BackOff, Clock, iso
from sallyport.base.errors import ConfigError, SallyportError, ServiceAway, ServiceRefused
from sallyport.host import disk
from sallyport.host.notify import Notifier

SEND_AT: Final = 500
"""Number of entries that are collected before they are sent. The reader yields only a few entries at a time."""

APPLY_US: Final = 1800 * SECOND
"""Time limit for the service to apply the sent entries, in microseconds. When the time has passed, the agent reads the
directory again, because the import may have failed."""

T = TypeVar("T")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of one run of the agent. counts: the number of entries of each kind that the agent has sent. job: the
    id of the import with which the service applies these entries."""

    full: bool
    counts: Mapping[str, int]
    job: int

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(self.counts.items()))
        return f"{'everything' if self.full else 'changes'}: {counts}; import {self.job}"


class StateFile:
    """The JSON file with an agent's state. If the file is lost, the next run is complete and writes a new file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> dict[str, object]:
        """Return the saved state, or an empty state if the file is missing or damaged."""
        try:
            value = json.loads(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def save(self, value: Mapping[str, object]) -> None:
        """Save the state. When this method returns, the state is on disk. Raises ConfigError."""
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        disk.write(self._path, json.dumps(value).encode() + b"\n")


class DirectoryAgent:
    """The agent that reads one directory for one domain."""

    def __init__(
        self,
        settings: DirectorySettings,
        reader: LdapReader,
        service: ServiceClient,
        keys: KeyRing,
        state: StateFile,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._reader = reader
        self._service = service
        self._keys = keys
        self._state = state
        self._clock = clock

    async def once(self, *, full: bool = False, patient: bool = False) -> RunSummary:
        """Read the directory once, and send its entries to the service (a run). All entries are sent if `full` is True
        or if a complete run is due. Otherwise only the changes are sent.

        patient: whether to raise ServiceAway if the service may still be applying the last run. If `patient` is False,
        the changes of the last run may be sent a second time. Raises ReadError if the directory cannot be read. Raises
        ServiceAway, ServiceRefused, ConfigError. An error before `BatchSender.finish` changes nothing in the service.
        """
        await self._in_thread(self._prepare_key)
        sender = BatchSender(self._ask, self._settings.domain_id, self._settings.name)
        cursor = await sender.begin()
        began = self._clock()
        if patient and self._is_applying(cursor, began):
            raise ServiceAway("the service has not applied the last entries yet")
        full = full or not cursor or self._is_full_due(began)
        counts: Counter[str] = Counter()
        last = Batch(())
        async with self._reader.read(self._settings.source, cursor, full=full) as batches:
            gathered: list[Entry] = []
            async for last in batches:
                gathered += last.entries
                if len(gathered) >= SEND_AT:
                    await self._send(sender, gathered, counts)
            await self._send(sender, gathered, counts)
        job = await sender.finish(last.cursor, complete=last.complete)
        self._state.save(
            {
                "full_at": iso(began) if full else self._saved("full_at"),
                "cursor": last.cursor,
                "sent_at": iso(self._clock()),
            }
        )
        return RunSummary(full, counts + Counter(refused=sender.refused), job)

    async def dry_run(self, report: Callable[[str], None], *, full: bool = False) -> None:
        """Read the directory, and report each entry that would be sent, as a line of JSON. The service is not
        contacted. Raises ReadError."""
        cursor = self._saved("cursor")
        async with self._reader.read(self._settings.source, cursor, full=full) as batches:
            async for batch in batches:
                for each in (line for entry in batch.entries for line in wire.to_wire(entry)):
                    report(json.dumps(each))

    async def run(self, systemd: Notifier) -> None:
        """Read and send the directory at the configured interval, until cancelled."""
        waits = BackOff(first_s=5.0)
        systemd.ready("begins")
        while True:
            try:
                summary = await self.once(patient=True)
            except SallyportError as error:
                wait_s = waits.failed(error.after_s if isinstance(error, ServiceAway) else 0.0)
                log.warning("directory_run_failed", reason=str(error), again_in_s=round(wait_s))
                systemd.status(f"the directory could not be sent; next attempt in {wait_s:.0f} s: {error}")
                if isinstance(error, ServiceRefused):
                    await self._in_thread(partial(self._recover_key, error))
            else:
                waits.worked()
                wait_s = self._settings.interval_s * random.uniform(0.9, 1.1)  # noqa: S311  so that not all ask at once
                log.info("directory_run_sent", sent=str(summary))
                systemd.status(f"sent {summary}; the directory is read again in {wait_s:.0f} s")
            await trio.sleep(wait_s)

    async def _send(self, sender: BatchSender, gathered: list[Entry], counts: Counter[str]) -> None:
        await sender.send(gathered)
        counts.update(type(entry).__name__.lower() for entry in gathered)
        gathered.clear()

    def _prepare_key(self) -> None:
        self._keys.enrol()
        self._keys.renew_when_due()

    def _recover_key(self, refusal: ServiceRefused) -> None:
        try:
            self._keys.refused(refusal)
        except ConfigError as error:
            log.warning("agent_file_unusable", reason=str(error))

    def _is_full_due(self, now: int) -> bool:
        """Return whether a complete run is due. A complete run is also due if the time of the last complete run is
        unknown or in the future."""
        return not iso(now - int(self._settings.full_every_s * SECOND)) < self._saved("full_at") <= iso(now)

    def _is_applying(self, cursor: str, now: int) -> bool:
        """Return whether the service may still be applying the run that the agent sent last. cursor: the cursor,
        according to the service, of the last run that the service has applied."""
        just_sent = iso(now - APPLY_US) < self._saved("sent_at") <= iso(now)
        return just_sent and cursor != self._saved("cursor")

    def _saved(self, name: str) -> str:
        return str(self._state.load().get(name) or "")

    async def _ask(self, path: str, body: Mapping[str, object]) -> Mapping[str, object]:
        return await self._in_thread(partial(self._service.post, path, body, key=self._keys.key))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True)
