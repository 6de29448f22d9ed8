"""The remembered stations of all domains."""

from collections.abc import Sequence

from sallyport.areas.factors.denials import Denial
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.remembered import repo
from sallyport.areas.factors.remembered.station import MAX_STATIONS, RememberedStation, SeenStation
from sallyport.base.clock import SECOND, Clock, iso, now_us
from sallyport.base.errors import NotFound
from sallyport.base.text import counted, fold
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import Store, Tx

HOUR_US = 3600 * SECOND


class RememberedStations:
    """The remembered stations of all domains. The caller knows which logins have a station, and that the first factor
    has passed."""

    def __init__(self, store: Store, clock: Clock = now_us) -> None:
        self._store = store
        self._clock = clock

    async def use(self, seen: SeenStation, hours: int) -> RememberedStation | None:
        """Return the remembered station of a login, and store its use. Return None if it is not remembered. hours: the
        present setting of the domain; a second factor that is older does not count. Raises StoreError."""
        at = self._clock()
        if not await self._store.read_now(lambda tx: repo.is_known(tx, seen, at)):
            return None
        return await self._store.write(lambda tx: repo.use(tx, seen, at - hours * HOUR_US, at))

    async def keep(self, seen: SeenStation, hours: int) -> None:
        """Remember a station, because the person has proved a strong second factor there. hours: the setting of the
        domain. Nothing is stored for a domain that was removed. Raises StoreError."""
        at = self._clock()
        until = at + hours * HOUR_US

        def transaction(tx: Tx) -> None:
            changes: dict[str, JSON] = {"client": [None, seen.client_name], "until": [None, iso(until)]}
            target = f"{seen.kind} {seen.station} of {seen.person.name}"
            audit.record_in(tx, "user.station.remember", seen.person.domain_id, target, changes, at=at)
            repo.keep(tx, seen, at, until)

        try:
            await self._store.write(transaction)
        except NotFound:
            return

    async def page(self, domain_id: int, user: str, offset: int, size: int) -> tuple[list[RememberedStation], int]:
        """Return a page of a domain's remembered stations, and the number of all. user: the name of a user, or empty
        for all."""
        at = self._clock()
        return await self._store.search(lambda tx: repo.page(tx, domain_id, fold(user), at, offset, size))

    async def of_person(self, person: Person) -> list[RememberedStation]:
        """Return the remembered stations of a person, for the person."""
        at = self._clock()

        def query(tx: Tx) -> list[RememberedStation]:
            return repo.page(tx, person.domain_id, person.key, at, 0, MAX_STATIONS)[0]

        return await self._store.read(query)

    async def remove(self, person: Person, station_id: int | None = None) -> int:
        """Forget a remembered station of a person, or all of them. Return their number. Raises NotFound if there is
        none."""
        at = self._clock()

        def transaction(tx: Tx) -> int:
            removed = repo.remove(tx, person, station_id)
            if not removed:
                raise NotFound("the user has no such remembered station")
            target = f"{counted(len(removed), 'remembered station')} of {person.name}"
            changes: dict[str, JSON] = {"stations": [[each.station for each in removed], []]}
            audit.record_in(tx, "user.station.forget", person.domain_id, target, changes, at=at)
            return len(removed)

        return await self._store.write(transaction)

    def forget(self, tx: Tx, domain_id: int, names: Sequence[str]) -> None:
        """Forget all stations of users that lose their access, in the transaction of this change."""
        repo.forget(tx, domain_id, names)

    def forget_denied(self, tx: Tx, denial: Denial) -> None:
        """Forget all stations of a user after the statement "This is not me"."""
        repo.forget(tx, denial.domain_id, [denial.user])
