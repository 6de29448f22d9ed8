"""The entrance of endpoint users and their groups."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from starlette.routing import BaseRoute

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.users import operations as api
from sallyport.areas.users import page, repo
from sallyport.areas.users.accounts import operations as accounts_api
from sallyport.areas.users.accounts.service import Credentials, PasswordPolicies, Users
from sallyport.areas.users.groups import operations as groups_api
from sallyport.areas.users.groups.service import Groups, PolicyIds
from sallyport.areas.users.instances.service import Instances
from sallyport.areas.users.service import EndpointUsers, Revocations
from sallyport.areas.users.totp import STEP_S, FindPerson, OneTimeSeeds
from sallyport.base.clock import SECOND
from sallyport.shell.command import Command
from sallyport.store.foreign import USERS
from sallyport.store.model import Tx
from sallyport.store.slices import Slice
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class Policies(PasswordPolicies, PolicyIds, Protocol):
    """The password policies that users and groups need."""


class UsersArea(Area):
    """Endpoint users as logins need them (`service`) and as admins manage them (`accounts`); their groups and
    one-time-password seeds.

    changed: receives the domain and the name of a changed user; the name None means all users, and 0 all domains.
    deleted, renamed: change what refers to deleted or renamed users. issuer: returns the issuer that authenticator apps
    show for a domain. find_person: finds a person of a directory or of the first factor. find_domain: returns the id of
    the domain with a name or id.
    """

    def __init__(
        self,
        parts: Parts,
        instances: Instances,
        policies: Policies,
        credentials: Credentials,
        revocations: Revocations,
        *,
        changed: Callable[[int, str | None], None],
        deleted: Slice[Sequence[int]],
        renamed: Slice[Sequence[int]],
        issuer: Callable[[int], str],
        find_person: FindPerson,
        find_domain: Callable[[str], int],
    ) -> None:
        store, vault, clock = parts.store, parts.vault, parts.clock
        self._parts, self._instances, self._find_domain = parts, instances, find_domain
        self._changed = changed
        self.foreign = {USERS: self._changed_elsewhere}
        self.service = EndpointUsers(
            store, vault, clock, changed=changed, deleted=deleted, renamed=renamed, revocations=revocations
        )
        self.groups = Groups(store, self.service, policies, clock)
        self.accounts = Users(store, vault, self.service, policies, credentials, clock)
        self.seeds = OneTimeSeeds(
            store,
            vault,
            self.service,
            issuer,
            clock,
            find_person=find_person,
            life_s=parts.settings.enrolment_link_hours * 3600,
        )

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of groups and users."""
        return [
            groups_api.operations(self.groups, gate),
            accounts_api.operations(self.accounts, self.seeds, self._enrolment_link, gate),
        ]

    def commands(self) -> Mapping[str, Command]:
        """Return the commands that import and export users and instances, and enrol users."""
        return api.local_operations(self._parts.store, self._instances, self.accounts, self.seeds, self._find_domain)

    def routes(self, gate: Gate) -> Sequence[BaseRoute]:
        """Return the page of an enrolment link."""
        return page.routes(self.seeds)

    def forget(self) -> None:
        """Empty the cache of users."""
        self.service.forget()

    def void(self, tx: Tx, at: int) -> None:
        """Spend the codes up to the next time step, because a code of the next one is accepted too."""
        repo.void_codes(tx, at // (STEP_S * SECOND) + 1)

    def _changed_elsewhere(self, domain_id: int) -> None:
        if domain_id:
            self.service.forget_domain(domain_id)
        else:
            self.service.forget()
        self._changed(domain_id, None)

    def _enrolment_link(self, secret: str) -> str:
        return self._parts.link_base() + page.PATH + secret
