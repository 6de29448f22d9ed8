"""The profiles of all domains: their changes, their files and their links."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import trio

from sallyport.areas.domains.domain import Domain
from sallyport.areas.profiles import repo
from sallyport.areas.profiles.files import Kind, ProfileFile, files_of
from sallyport.areas.profiles.profile import Profile, Trust, new_profile
from sallyport.areas.profiles.signing import ProfileSigner
from sallyport.areas.profiles.trust import ServerTrust, checked_anchors
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import NotFound, invalid_field
from sallyport.base.fair import FairLimiter
from sallyport.base.secret import token_hash
from sallyport.base.text import existing
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import Store, Tx

LINK_OCTETS: Final = 32
DAY: Final = 86_400 * SECOND
NOT_FOUND: Final = "profile not found"

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file with its content."""

    file: ProfileFile
    content: bytes


class Profiles:
    """The profiles of all domains.

    trust: reads what devices must know of the server. signer: signs the files for Apple. Files are made in one worker
    thread, one at a time, so that many downloads do not delay logins. Waiting tenants take turns.
    """

    def __init__(self, store: Store, trust: ServerTrust, signer: ProfileSigner, clock: Clock = now_us) -> None:
        self._store = store
        self._trust = trust
        self._signer = signer
        self._clock = clock
        self._one_at_a_time = FairLimiter[int](1)

    async def of_domain(self, domain_id: int) -> list[Profile]:
        """Return the profiles of a domain, ordered by name. Raises StoreError."""
        return await self._store.read(lambda tx: repo.profiles(tx, domain_id))

    async def present(self, domain_id: int, name: str) -> Profile:
        """Return a domain's profile. Case is ignored. Raises NotFound if there is no such profile."""
        return await self._store.read(lambda tx: _present(tx, domain_id, name))

    async def behind(self, link: str) -> Profile:
        """Return the profile behind the last part of a link. Raises NotFound if the link is not valid."""
        at, hashed = self._clock(), token_hash(link)
        found = await self._store.read(lambda tx: repo.behind(tx, hashed, at))
        if found is None:
            raise NotFound(NOT_FOUND)
        return found

    async def set(self, domain: Domain, name: str, changes: Mapping[str, object]) -> Profile:
        """Change a profile of a domain. A profile that does not exist is added.

        changes: the new values of fields of `Profile`; the others stay. Raises Invalid, Conflict.
        """
        if anchors := str(changes.get("anchors") or "").strip():
            checked = await self._in_turn(domain.tenant_id, lambda: checked_anchors(anchors, "anchors"))
            changes = {**changes, "anchors": checked}
        return await self._store.write(lambda tx: self.set_in(tx, domain, name, changes))

    def set_in(self, tx: Tx, domain: Domain, name: str, changes: Mapping[str, object]) -> Profile:
        """Change a profile in a transaction; see `set`. The anchors are checked already. Raises Invalid, Conflict."""
        at = self._clock()
        before = repo.get(tx, domain.id, name)
        new = replace(before or new_profile(domain, name), **changes)  # type: ignore[arg-type]  # fields of Profile
        check_networks(new.ssids, wired=new.wired)
        repo.put(tx, new, at)
        shown = {} if before is None else repo.settings_of(before)
        _record(tx, "profile.set", new, at, shown, repo.settings_of(new))
        return _present(tx, domain.id, name)

    async def remove(self, domain_id: int, name: str) -> None:
        """Remove a profile and its link. Raises NotFound."""
        await self._store.write(lambda tx: self.remove_in(tx, domain_id, name))

    def remove_in(self, tx: Tx, domain_id: int, name: str) -> None:
        """Remove a profile and its link in a transaction. Raises NotFound."""
        profile = _present(tx, domain_id, name)
        repo.delete(tx, profile)
        _record(tx, "profile.remove", profile, self._clock(), repo.settings_of(profile), {})

    async def make_link(self, domain_id: int, name: str, days: int) -> tuple[Profile, str]:
        """Make a new link for a profile, in place of its former one. Return the profile and the last part of the link.
        With `days` 0, the link ends, and the last part is empty. Raises NotFound."""
        link, at = secrets.token_urlsafe(LINK_OCTETS) if days else "", self._clock()
        expires_at = at + days * DAY if days else None

        def transaction(tx: Tx) -> Profile:
            profile = _present(tx, domain_id, name)
            repo.set_link(tx, profile, token_hash(link) if link else None, expires_at, at)
            changes = audit.changed({"linkExpiresAt": profile.link_expires_at}, {"linkExpiresAt": expires_at})
            audit.record_in(tx, "profile.link", domain_id, _target(profile), changes, at=at)
            return replace(profile, link_expires_at=expires_at)

        return await self._store.write(transaction), link

    async def trust_of(self, profile: Profile, tenant_id: int) -> Trust:
        """Return what devices must know of the server. Raises Conflict if it is not known."""
        return await self._in_turn(tenant_id, lambda: self._trust.of(profile))

    async def _in_turn(self, tenant_id: int, work: Callable[[], ResultT]) -> ResultT:
        """Return the result of work in a worker thread, when it is the turn of the tenant."""
        async with self._one_at_a_time.slot(tenant_id):
            return await trio.to_thread.run_sync(work)

    async def made(self, profile: Profile, tenant_id: int, name: str, user: str = "") -> MadeFile:
        """Return a file of a profile. name: the name of the file. user: the user name for the file, or empty.

        Raises NotFound if the profile has no such file. Raises Conflict if the file cannot be made.
        """
        (made,) = await self._make(profile, tenant_id, [_file(profile, name)], user)
        return made

    async def _make(self, profile: Profile, tenant_id: int, wanted: list[ProfileFile], user: str) -> list[MadeFile]:
        def make() -> list[MadeFile]:
            trust = self._trust.of(profile)
            made = [MadeFile(each, each.make(trust, user)) for each in wanted]
            return [
                replace(each, content=self._signer.signed(each.content, tenant_id))
                if each.file.kind is Kind.APPLE
                else each
                for each in made
            ]

        return await self._in_turn(tenant_id, make)


def check_networks(ssids: Sequence[str], *, wired: bool) -> None:
    """Raise Invalid if a profile has no network."""
    if not ssids and not wired:
        raise invalid_field("ssids", "give an SSID, or set wired")


def _file(profile: Profile, name: str) -> ProfileFile:
    files = {each.file: each for each in files_of(profile)}
    found = files.get(name)
    if found is None:
        raise NotFound(f"the profile has no such file{existing(name, files)}")
    return found


def _present(tx: Tx, domain_id: int, name: str) -> Profile:
    found = repo.get(tx, domain_id, name)
    if found is None:
        raise NotFound(NOT_FOUND)
    return found


def _target(profile: Profile) -> str:
    return f"profile {profile.name}"


def _record(
    tx: Tx, action: str, profile: Profile, at: int, before: Mapping[str, JSON], after: Mapping[str, JSON]
) -> None:
    audit.record_in(tx, action, profile.domain_id, _target(profile), audit.changed(before, after), at=at)
