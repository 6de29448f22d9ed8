"""Count failures, refuse locked users and stations, and unlock them."""

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Final

import structlog

from sallyport.areas.devices.device import Device
from sallyport.areas.domains.domain import Domain
from sallyport.areas.policy.attempt import Attempt
from sallyport.areas.policy.lockouts import repo
from sallyport.areas.policy.lockouts.failures import MAX_NAMES, Failure, Failures, Key, Lock, LockoutKind
from sallyport.areas.policy.lockouts.repo import LockoutRow
from sallyport.areas.policy.lockouts.stations import RECENT_US, SharedStations, is_nas, station_of
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND, Clock, iso
from sallyport.base.mac import station_key
from sallyport.base.text import fold_name
from sallyport.base.wire import JSON
from sallyport.metrics import LockoutMetrics
from sallyport.nodes.notices import Notices
from sallyport.nodes.periodic import every
from sallyport.radius.attributes import CALLING_STATION_ID, MESSAGE_AUTHENTICATOR, PROXY_STATE
from sallyport.radius.packet import as_text
from sallyport.radius.password import Method, sent_password
from sallyport.store import audit
from sallyport.store.model import Store, Tx

_OF_A_HOP: Final = frozenset({MESSAGE_AUTHENTICATOR, PROXY_STATE})
SWEEP_S: Final = 5.0
MINUTE_US: Final = 60 * SECOND
CLOCKS_US: Final = 10 * MINUTE_US
"""Maximum difference between the clocks of two nodes, in microseconds. Stored locks are deleted only this long after
their expiry. So a node with a fast clock deletes no lock that another node still needs."""
UNTIL_UNLOCKED: Final = 253_402_300_799 * SECOND
"""End of a lock that only an operator ends, 9999-12-31T23:59:59Z in microseconds."""
_NOTICE: Final = "lockout"

Write = Callable[[Tx, Device], None]
"""A function that stores a lock. device: the network device that sent the login."""

log = structlog.get_logger()


class Lockouts:
    """The lock-outs of all domains. Call `load` before the first login. `run` removes expired locks.

    notices: the messages between nodes. Through them, counts and locks apply on all nodes. key: a secret key for hashes
    of guesses, the same on all nodes. limit: the number of failures within five minutes after which a name is locked; 0
    disables lock-outs. minutes: the duration of a lock. has_failures: whether a lock exists, or a failure has happened
    within the last hour. If `has_failures` is false, the login path skips the checks of this class.
    """

    def __init__(
        self,
        store: Store,
        metrics: LockoutMetrics,
        notices: Notices,
        key: bytes,
        *,
        limit: int,
        minutes: int,
        clock: Clock,
        max_names: int = MAX_NAMES,
    ) -> None:
        self._on_unlock = list[Callable[[Tx, tuple[int, str]], None]]()
        self._store = store
        self._metrics = metrics
        self._limit = limit
        self._clock = clock
        self._users, self._unknown_users, self._stations, self._pages = self._tables = tuple(
            Failures(limit, minutes * MINUTE_US, max_names=max_names, tell=partial(notices.send, _NOTICE, number))
            for number in range(4)
        )
        notices.receive(_NOTICE, self._adopt)
        self._clocks_us = CLOCKS_US if notices.is_shared else 0
        self._held = BoundedMap[tuple[int, str], None](max_names)
        self._shared = SharedStations(max_stations=max_names)
        self._last_failure = self._swept_at = 0
        self._last_end = 0  # the time of a sweep that ended entries whose rows may still be in the store; 0 if none
        self._key = key
        self.has_failures = False
        metrics.watch(
            lambda: {
                (LockoutKind.USER.value,): float(self._users.locked + self._unknown_users.locked + len(self._held)),
                (LockoutKind.STATION.value,): float(self._stations.locked),
            }
        )

    def use(self, *, limit: int, minutes: int) -> None:
        """Set the limit and the duration of new locks. A limit of 0 ends the locks, except those that `hold` made."""
        self._limit = limit
        for each in self._tables:
            each.limit, each.lock_us = limit, minutes * MINUTE_US
            if not limit:
                each.clear()

    # --- for the login path -----------------------------------------------------------------------------------

    def on_unlock(self, reset: Callable[[Tx, tuple[int, str]], None]) -> None:
        """Register a function that resets what the store counts for a user. It is called in the transaction that
        unlocks the user."""
        self._on_unlock.append(reset)

    def refuses(self, attempt: Attempt) -> LockoutKind | None:
        """Return which lock refuses a login: that of the user or that of the station. Return None if neither is locked
        out."""
        if not (self._users.locks or self._unknown_users.locks or self._stations.locks or self._held):
            return None
        now, user = self._clock(), _user_key(attempt)
        if not attempt.outside and (
            self._users.is_locked(user, now) or self._unknown_users.is_locked(user, now) or user in self._held
        ):
            return LockoutKind.USER
        request, domain_id = attempt.arrival.request, attempt.domain.id
        station = station_of(request, domain_id) if self._stations.locks else None
        return LockoutKind.STATION if station is not None and self._stations.is_locked(station, now) else None

    def repeats(self, attempt: Attempt) -> bool:
        """Return whether a request repeats a wrong code with the same authenticator. Such a request does not count
        again, so its code must not be checked again: it may be the right code of a later time."""
        return attempt.method == Method.PAP and self._users.has(_user_key(attempt), self._proof(attempt, Failure.CODE))

    def note_failure(self, attempt: Attempt, failure: Failure) -> Sequence[Write]:
        """Count the failure of a login. Do not call it for a login that a lock has refused. Return the functions that
        write new locks to the store. Call them in the transaction that stores the login's event, with the login's
        device.

        A wrong code counts also in an unsigned request. A code is checked only after a correct password or with a valid
        State, and a spoofer has neither.
        """
        if failure is Failure.NO_CODE_LEFT:
            self.has_failures = True
            self._last_failure = now = self._clock()
            return [self._lock_user(attempt, self._users, self._limit, now)]
        if not self._limit or (failure is not Failure.CODE and not _is_authentic(attempt)):
            return ()
        return self._fail(attempt, failure)

    def note_success(self, attempt: Attempt) -> None:
        """Reset the counts of the user and the station after a login that was admitted."""
        domain, at = attempt.domain, attempt.arrival.at
        user, station = _user_key(attempt), station_of(attempt.arrival.request, domain.id)
        if station is not None:
            self._stations.forgive(station, codes=attempt.approved)
        if attempt.outside:
            return
        self._users.forgive(user, codes=attempt.approved)
        self._unknown_users.forgive(user, codes=attempt.approved)
        if station is not None:
            self._shared.note(station, domain.tenant_id, user[1], at)

    # --- for pages --------------------------------------------------------------------------------------------

    def refuses_page(self, attempt: Attempt) -> bool:
        """Return whether a user is locked out at the pages: by failures of logins, or by wrong passwords at pages."""
        return self.refuses(attempt) is not None or (
            not attempt.outside and self._pages.is_locked(_user_key(attempt), self._clock())
        )

    def note_page_failure(self, attempt: Attempt, failure: Failure) -> None:
        """Count a wrong password or an unknown name at a page. The lock applies to pages only, and is in memory:
        everybody on the Internet may open a page, and must not keep a user out of the network."""
        if not self._limit or attempt.outside:
            return
        self.has_failures = True
        self._last_failure = now = self._clock()
        user, tenant_id, at = _user_key(attempt), attempt.domain.tenant_id, attempt.arrival.at
        failures = self._pages.fail(user, tenant_id, at, self._proof(attempt, failure), of_code=False)
        if failures >= self._limit:
            self._pages.lock(user, tenant_id, at, now, failures)

    def note_page_success(self, attempt: Attempt) -> None:
        """Reset the counts of a user after a sign-in at a page."""
        self.note_success(attempt)
        self._pages.forgive(_user_key(attempt), codes=True)

    # --- locks until an operator acts -------------------------------------------------------------------------

    def write_held(self, tx: Tx, domain: Domain, name: str) -> None:
        """Lock a user until an operator unlocks the user, in the caller's transaction. After the commit, call `hold` on
        every node."""
        now = self._clock()
        row = LockoutRow(domain.id, LockoutKind.USER, fold_name(name), name, now, UNTIL_UNLOCKED, 0)
        if not repo.is_held(tx, row):
            self._write_row(tx, row, domain)

    def hold(self, domain: Domain, name: str) -> None:
        """Refuse the logins of a user from now on. The lock is in the store."""
        self._held.put((domain.id, fold_name(name)), None, domain.tenant_id)
        self.has_failures = True

    # --- failures ---------------------------------------------------------------------------------------------

    def _fail(self, attempt: Attempt, failure: Failure) -> Sequence[Write]:
        self.has_failures = True
        self._last_failure = now = self._clock()
        writes = list[Write]()
        domain, at = attempt.domain, attempt.arrival.at
        proof, of_code = self._proof(attempt, failure), failure is Failure.CODE
        if not attempt.outside:
            names = self._unknown_users if failure is Failure.UNKNOWN_USER else self._users
            failures = names.fail(_user_key(attempt), domain.tenant_id, at, proof, of_code=of_code)
            if failures >= self._limit:
                writes.append(self._lock_user(attempt, names, failures, now))
        station = station_of(attempt.arrival.request, domain.id)
        if station is None or self._stations.knows(station, now):
            return writes
        if is_nas(attempt.arrival) or self._shared.is_shared(station, now):
            return writes
        failures = self._stations.fail(station, domain.tenant_id, at, proof, of_code=of_code)
        if failures >= self._limit:
            lock = self._stations.lock(station, domain.tenant_id, at, now, failures, holds=False)
            sent = as_text(attempt.arrival.request.first[CALLING_STATION_ID])
            row = LockoutRow(domain.id, LockoutKind.STATION, station[1].hex(), sent, now, lock.until, failures)
            writes.append(partial(self._write_station, row=row, domain=domain, lock=lock))
        return writes

    def _lock_user(self, attempt: Attempt, names: Failures, failures: int, now: int) -> Write:
        user, domain = _user_key(attempt), attempt.domain
        lock = names.lock(user, domain.tenant_id, attempt.arrival.at, now, failures)
        row = LockoutRow(domain.id, LockoutKind.USER, user[1], attempt.user, now, lock.until, failures)
        return partial(self._write, row=row, domain=domain)

    def _proof(self, attempt: Attempt, failure: Failure) -> bytes:
        """Return octets that identify a guess, so that a repetition does not count.

        The same password with another authenticator is the same guess, and so is a replayed packet. The same code again
        is a new guess, because codes change. Another response with the same authenticator is a new guess, because an
        attacker with the shared secret can choose the authenticator.
        """
        request = attempt.arrival.request
        if attempt.method == Method.PAP:
            again = request.authenticator if failure is Failure.CODE else b""
            password = sent_password(request, attempt.arrival.client.secret)
            guess = fold_name(attempt.user).encode() + b"\0" + password + again
        else:
            guess = request.authenticator + request.without(_OF_A_HOP)
        return blake2b(guess, key=self._key, digest_size=16).digest()

    def _write_station(self, tx: Tx, device: Device, row: LockoutRow, domain: Domain, lock: Lock) -> None:
        """If the NAS has another station, store the station's lock in the transaction of the event, and confirm the
        lock. If the NAS has no other station, do not store the lock, but let the lock expire."""
        if device.id is not None and repo.has_other_station(tx, device.domain_id, device.id, row.name):
            self._write(tx, device, row, domain)
            self._stations.confirm((domain.id, bytes.fromhex(row.name_key)), domain.tenant_id, lock)
        else:
            lock.until = row.since

    def _write(self, tx: Tx, _device: Device, row: LockoutRow, domain: Domain) -> None:
        self._write_row(tx, row, domain)

    def _write_row(self, tx: Tx, row: LockoutRow, domain: Domain) -> None:
        repo.write(tx, row)
        audit.record(
            tx,
            f"{row.kind}.locked",
            at=row.since,
            tenant_id=domain.tenant_id,
            domain_id=domain.id,
            target=f"{row.kind} {row.name}",
            changes={"failures": [None, row.failures], "until": [None, iso(row.until)]},
        )
        self._metrics.locked(row.kind)

    def _adopt(self, change: Sequence[JSON], age_us: int) -> None:
        """Apply a change that another node has made. age_us: the time since the change, in microseconds."""
        number, *values = change
        at = self._clock() - age_us
        key = self._tables[int(str(number))].adopt(values, at)
        if key is not None:
            self._held.pop(key)
        self.has_failures = True
        self._last_failure = max(self._last_failure, at)

    def take_back(self, attempt: Attempt) -> None:
        """Remove the failure of a login whose event could not be stored. The device gets no reply. Therefore it sends
        the login again, and then the failure is counted again."""
        at, user = attempt.arrival.at, _user_key(attempt)
        station = station_of(attempt.arrival.request, attempt.domain.id)
        self._users.take_back(user, at)
        self._unknown_users.take_back(user, at)
        if station is not None:
            self._stations.take_back(station, at)

    # --- for admins -------------------------------------------------------------------------------------------

    async def page(self, domain_id: int, search: str, *, offset: int, limit: int) -> tuple[list[LockoutRow], int]:
        """Return one page of a domain's current lock-outs, ordered by id, and the number of all matches. search: a part
        of the name, or empty. Raises StoreError."""
        now = self._clock()
        return await self._store.read(lambda tx: repo.page(tx, domain_id, now, search, offset=offset, limit=limit))

    async def unlock(self, domain_id: int, kind: LockoutKind, name: str) -> list[LockoutRow]:
        """Remove the lock and the failures of a user or a station. Return the removed locks, which may be none. Raises
        StoreError.

        The locks of the stations from which a user has failed are removed together with that of the user. Otherwise
        the user would still be refused there. name: the name of a user, or the Calling-Station-Id of a station in any
        notation.
        """
        now, same = self._clock(), fold_name if kind is LockoutKind.USER else station_key
        wanted, stations = same(name.strip()), frozenset[str]()
        if kind is LockoutKind.USER:
            stations = await self._store.search(lambda tx: repo.stations_of(tx, domain_id, wanted, now))

        def transaction(tx: Tx) -> list[LockoutRow]:
            found = [row for row in repo.of_kind(tx, domain_id, kind, now) if same(row.name.strip()) == wanted]
            if stations:
                found += [row for row in repo.of_kind(tx, domain_id, LockoutKind.STATION, now) if row.name in stations]
            if kind is LockoutKind.USER:
                for reset in self._on_unlock:
                    reset(tx, (domain_id, wanted))
            for row in found:
                repo.delete(tx, row)
                audit.record_in(tx, f"{row.kind}.unlocked", domain_id, f"{row.kind} {row.name}", at=now)
            return found

        found = await self._store.write(transaction)
        for row in found:
            for names in self._tables:
                names.unlock(_key(row))
            if row.kind == LockoutKind.USER:
                self._held.pop((row.domain_id, row.name_key))
        if kind is LockoutKind.USER:  # a user without a lock may have a count, which is reset too
            self._users.unlock((domain_id, wanted))
            self._unknown_users.unlock((domain_id, wanted))
            self._pages.unlock((domain_id, wanted))
        return found

    # --- over time --------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Replace the locks in memory by the stored locks. Raises StoreError."""
        rows = await self._store.read(lambda tx: repo.load(tx, self._clock()))
        for names in self._tables:
            names.clear()
        self._held.clear()
        self._shared.clear()
        if not self._limit:
            rows = [row for row in rows if row.until == UNTIL_UNLOCKED]
        for row in rows:
            if row.until == UNTIL_UNLOCKED:
                self._held.put((row.domain_id, row.name_key), None, row.tenant_id)
                continue
            names = self._users if row.kind == LockoutKind.USER else self._stations
            names.restore(_key(row), row.tenant_id, Lock(row.since, row.until, row.failures))
        self.has_failures = bool(rows)
        self._swept_at = max((row.since for row in rows), default=0)  # of the future, if the clock was set back

    async def run(self) -> None:
        """Remove expired locks, until cancelled."""
        await every(SWEEP_S, self.sweep, failure="lockout_purge_failed")

    async def sweep(self) -> None:
        """Remove expired failures and locks, in memory and in the store. Raises StoreError."""
        now = self._clock()
        if now < self._swept_at:
            await self._set_back(now)
        self._swept_at = now
        ended = sum(names.sweep(now) for names in self._tables)
        if (
            self.has_failures
            and not self._held
            and not any(map(len, self._tables))
            and self._last_failure <= now - RECENT_US
        ):
            self.has_failures = False
            self._shared.clear()
        if ended:
            self._last_end = now
        if self._last_end:
            await self._store.write(partial(repo.purge, now=now - self._clocks_us))
            if self._last_end + self._clocks_us <= now:
                self._last_end = 0

    async def _set_back(self, now: int) -> None:
        """Shorten the locks that would last longer than their duration, because the clock was set back. The rows of
        several nodes stay, because the clock of one node says nothing about the others. Raises StoreError."""
        for names in self._tables:
            names.set_back(now)
        self._last_failure, self._last_end = min(self._last_failure, now), min(self._last_end, now)
        if not self._clocks_us:
            await self._store.write(partial(repo.set_back, now=now, end=UNTIL_UNLOCKED))


def _user_key(attempt: Attempt) -> tuple[int, str]:
    return attempt.domain.id, fold_name(attempt.user)


def _key(row: LockoutRow) -> Key:
    if row.kind == LockoutKind.USER:
        return row.domain_id, row.name_key
    return row.domain_id, bytes.fromhex(row.name_key)


def _is_authentic(attempt: Attempt) -> bool:
    """Return whether a login certainly comes from its RADIUS client.

    This is certain if the request is signed. It is also certain if the PAP password is correct, because only a sender
    with the shared secret can encrypt the password.
    """
    return attempt.arrival.request.signed or (attempt.proven and attempt.method == Method.PAP)
