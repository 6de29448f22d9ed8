"""Fetch the revocation lists of all nodes: the work of the node with the lease.

Each list is fetched ahead of its nextUpdate, verified, stored, and announced to the other nodes. Concurrent fetches of
one address share one download; each authority verifies the octets by its own certificates. An older list never replaces
a newer one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

import structlog
import trio
from cryptography import x509

from sallyport.areas.authorities.revocation import repo
from sallyport.areas.authorities.revocation.addresses import AddressClients, is_http
from sallyport.areas.authorities.revocation.entries import ListError
from sallyport.areas.authorities.revocation.lists import MAX_LIST, SKEW_US, RevocationList, read_list
from sallyport.areas.authorities.revocation.repo import ListRow
from sallyport.areas.authorities.revocation.sources import PAUSE_US, RevocationLists, Source
from sallyport.areas.authorities.revocation.state import RevocationRules
from sallyport.base.clock import SECOND, Clock, from_us
from sallyport.base.errors import LeaseLost, SallyportError, StoreError
from sallyport.base.fair import FairLimiter
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.http import HttpFactory
from sallyport.store.model import Store

MAX_OCTETS_OF_TENANT: Final = 128 * 1024 * 1024
"""Maximum number of octets of all lists of a tenant."""
MAX_OCTETS_OF_ALL: Final = 1024 * 1024 * 1024
"""Maximum number of octets of all lists of the installation. Each tenant has an equal share."""
DOWNLOAD_S: Final = 60.0
AT_ONCE: Final = 4
"""Maximum number of concurrent downloads. A tenant has one at a time."""
LOOK_S: Final = 5.0
KEPT_US: Final = 30 * 86_400 * SECOND
"""For how long a list is fetched after the last login with a certificate that names it."""
_GONE_US: Final = 60 * SECOND
_MAX_USE_US: Final = 6 * 3600 * SECOND
_MIN_USE_US: Final = 300 * SECOND
_LATE_US: Final = 60 * SECOND
_RETRY_US: Final = 30 * SECOND

log = structlog.get_logger()


class ListMeter(Protocol):
    """Metrics of revocation lists."""

    def fetched(self, result: str) -> None:
        """Count a fetch. result: new, same, older, refused (it cannot be used), or failed (no answer)."""


def next_fetch(found: RevocationList | None, failures: int, now: int) -> int:
    """Return when a list is fetched again: after an eighth of its remaining time, and at least every six hours. After a
    failure, it is fetched again soon."""
    left = 0 if found is None else found.next_update - now
    pause = max(left // 8, _MIN_USE_US if left > 2 * _MIN_USE_US else _LATE_US)
    if failures:
        pause = min(pause, _RETRY_US << min(failures - 1, 5))
    return now + min(pause, _MAX_USE_US)


class ListFetcher:
    """Fetches the lists of all authorities.

    rules: a function that returns the rules of each authority, by its id. on_new: a function that is called after an
    authority has a new list. most: the maximum number of octets of all lists.
    """

    def __init__(
        self,
        lists: RevocationLists,
        store: Store,
        http: HttpFactory,
        clock: Clock,
        rules: Callable[[], Mapping[int, RevocationRules]],
        meter: ListMeter,
        on_new: Callable[[int], None] = lambda _authority_id: None,
        most: int = MAX_OCTETS_OF_ALL,
    ) -> None:
        self._most = most
        self._lists = lists
        self._store = store
        self._clients = AddressClients(http, MAX_LIST)
        self._clock = clock
        self._rules = rules
        self._meter = meter
        self._on_new = on_new
        self._fetching: set[int] = set()
        self._downloads: dict[str, _Download] = {}
        self._turns = FairLimiter[int](AT_ONCE)
        self._of_tenant: dict[int, trio.Lock] = {}
        self._parsing = FairLimiter[int](1)

    async def lead(self) -> None:
        """Fetch the lists of all nodes ahead of time, until cancelled."""
        self._fetching.clear()
        async with trio.open_nursery() as nursery:
            while True:
                woken = self._lists.changed
                try:
                    await self._tend(nursery)
                except LeaseLost:
                    pass
                except SallyportError as error:
                    log.warning("revocation_lists_not_tended", error=str(error))
                with trio.move_on_after(LOOK_S):
                    await woken.wait()

    async def _tend(self, nursery: trio.Nursery) -> None:
        rules, now = self._rules(), self._clock()
        for each in rules.values():
            own = self._lists.of(each.authority_id)
            for address in each.lists:
                if address not in own and is_http(address):
                    await self._lists.want(each, address)
        for source in self._lists.all():
            row = source.row
            of = rules.get(row.authority_id)
            if row.id in self._fetching or source.is_loading:  # an older list must not replace the one in the store
                continue
            if of is None or not self._is_wanted(of, row, now):
                if row.wanted_at < now - _GONE_US:  # another node may know a newer authority than this one
                    await self._remove(row)
            elif not now < row.next_at <= now + _MAX_USE_US + SKEW_US:  # due, or the clock was set back
                self._fetching.add(row.id)
                nursery.start_soon(self._fetch, of, source)

    def _is_wanted(self, rules: RevocationRules, row: ListRow, now: int) -> bool:
        if row.address in rules.lists:
            return True
        is_delta = any(
            each.list is not None and row.address in each.list.freshest
            for each in self._lists.of(row.authority_id).values()
        )
        return is_delta or (not rules.lists and rules.uses_certificates and row.wanted_at > now - KEPT_US)

    async def _remove(self, row: ListRow) -> None:
        while await self._store.write(partial(repo.delete_old_part, list_id=row.id, version=-1, parts=0)):
            pass
        await self._store.write(partial(repo.remove, list_id=row.id))
        await self._lists.load()
        self._lists.announce()

    async def _fetch(self, rules: RevocationRules, source: Source) -> None:
        try:
            async with self._of_tenant.setdefault(rules.tenant_id, trio.Lock()), self._turns.slot(rules.tenant_id):
                await self._fetch_one(rules, source)
        except LeaseLost:
            pass
        except StoreError as error:
            log.warning("revocation_list_not_stored", address=source.row.address, error=str(error))
            await trio.sleep(LOOK_S)
        except Exception:  # one list must not end the task that fetches those of all tenants
            log.exception("revocation_list_not_fetched", address=source.row.address)
            await self._broken(source)
        finally:
            self._fetching.discard(source.row.id)
            self._lists.tell()

    async def _broken(self, source: Source) -> None:
        """Store that a fetch has ended with an unexpected error, so that the list is not fetched again at once."""
        row, now = source.row, self._clock()
        failures = row.failures + 1
        new = replace(row, checked_at=now, next_at=next_fetch(source.list, failures, now), failures=failures)
        new = replace(new, error="internal error: see the log of the server")
        self._lists.put(Source(new, source.list))
        self._meter.fetched("failed")
        try:
            await self._store.write(partial(repo.checked, row=new, before=row.next_at, soon=now + PAUSE_US))
        except SallyportError as error:
            log.warning("revocation_list_not_stored", address=row.address, error=str(error))

    async def _fetch_one(self, rules: RevocationRules, source: Source) -> None:
        row, before = source.row, source.list
        error, found, result = "", None, "failed"
        try:
            octets = await self._download(rules.tenant_id, row.address)
            result = "refused"
            async with self._parsing.slot(rules.tenant_id):
                found = await trio.to_thread.run_sync(_verified, octets, rules.bundle, row.issuer, self._clock())
        except (ProviderError, ListError) as failure:
            error = str(failure)
        if found is not None:
            found, error, result = self._compared(row, before, found)
        self._meter.fetched(result)
        now = self._clock()
        failures = row.failures + 1 if error else 0
        if error and row.error != error:
            log.warning("revocation_list_not_fetched", address=row.address, authority=row.authority_id, error=error)
        current = before if found is None else found
        new = replace(
            row, checked_at=now, next_at=next_fetch(current, failures, now), failures=failures, error=error[:500]
        )
        if found is not None:
            new = replace(new, version=row.version + 1, list=repo.stored_list(found))
            parts = await trio.to_thread.run_sync(repo.parts_of, found.entries)
            for number, part in enumerate(parts):
                await self._store.write(
                    partial(repo.put_part, list_id=row.id, version=new.version, part=number, content=part)
                )
        await self._store.write(partial(repo.checked, row=new, before=row.next_at, soon=now + PAUSE_US))
        self._lists.put(Source(new, current))
        self._lists.announce()
        if found is not None:
            log.info("revocation_list_fetched", address=row.address, entries=found.entries.count, octets=found.size)
            await self._after(rules, new, found)

    async def _after(self, rules: RevocationRules, row: ListRow, found: RevocationList) -> None:
        """Fetch the delta list of a new list, and delete the entries of the old one."""
        for address in found.freshest:
            if is_http(address):
                await self._lists.want(rules, address, row.issuer)
        self._on_new(rules.authority_id)
        parts = len(await trio.to_thread.run_sync(repo.parts_of, found.entries))
        while await self._store.write(partial(repo.delete_old_part, list_id=row.id, version=row.version, parts=parts)):
            pass

    def _compared(
        self, row: ListRow, before: RevocationList | None, found: RevocationList
    ) -> tuple[RevocationList | None, str, str]:
        """Return the list if it replaces the one before, an error, and the result for the metrics."""
        if before is not None and found.sha256 == before.sha256:
            late = "" if before.is_valid(self._clock()) else _late(before)
            return None, late, "same"
        if before is not None and not found.may_replace(before, self._clock()):
            why = "older than" if found.is_like(before) else "of another issuer, scope or kind than"
            return None, f"the list is {why} the one that was fetched before", "older"
        if error := self._excess(row, found.size):
            return None, error, "refused"
        return found, "" if found.is_valid(self._clock()) else _late(found), "new"

    def _excess(self, row: ListRow, size: int) -> str:
        """Return which limit a new list of this size exceeds. Return an empty text if there is room. If the lists of
        the installation are too large, only tenants with more than an equal share are refused."""
        of_tenants = Counter[int]({row.tenant_id: size})
        for each in self._lists.all():
            if each.list is not None and each.row.id != row.id:
                of_tenants[each.row.tenant_id] += each.list.size
        own = of_tenants[row.tenant_id]
        if own > MAX_OCTETS_OF_TENANT:
            return f"the lists of the tenant have more than {MAX_OCTETS_OF_TENANT // 1024 // 1024} MiB"
        if of_tenants.total() > self._most and own > self._most // len(of_tenants):
            return f"the lists of all tenants have more than {self._most // 1024 // 1024} MiB"
        return ""

    async def _download(self, tenant_id: int, address: str) -> bytes:
        """Return the octets at an address. Concurrent calls for one address share one download. Raises
        ProviderError."""
        running = self._downloads.get(address)
        if running is not None:
            await running.done.wait()
            if running.octets is not None:
                return running.octets
            raise ProviderError(running.error)
        self._downloads[address] = running = _Download(trio.Event())
        try:
            running.octets = octets = await self._clients.exchange(tenant_id, address, DOWNLOAD_S)
        except ProviderError as error:
            running.error = str(error)
            raise
        else:
            return octets
        finally:
            del self._downloads[address]
            running.done.set()


@dataclass(slots=True)
class _Download:
    """A running download. done: set at its end. octets: the result, or None after a failure."""

    done: trio.Event
    octets: bytes | None = None
    error: str = "the download was cancelled"


def _verified(octets: bytes, bundle: str, issuer: bytes, now: int) -> RevocationList:
    """Return a list that one of the certificates has signed. Raises ListError, whatever the octets are."""
    try:
        issuers = x509.load_pem_x509_certificates(bundle.encode())
        if issuer:
            issuers.append(x509.load_der_x509_certificate(issuer))
        return read_list(octets, tuple(issuers), now)
    except ListError:
        raise
    except Exception as error:  # a list of a tenant must not end the task that fetches those of all tenants
        log.exception("revocation_list_unreadable")
        raise ListError("it cannot be read") from error


def _late(found: RevocationList) -> str:
    return f"the list expired at {from_us(found.next_update):%Y-%m-%d %H:%M} UTC, and there is no newer one"
