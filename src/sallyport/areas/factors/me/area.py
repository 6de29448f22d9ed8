"""The entrance of enrolment links and self-service."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from starlette.routing import BaseRoute

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.factors.area import FactorsArea
from sallyport.areas.factors.denials import Denial
from sallyport.areas.factors.enrolment import operations as enrolment_api
from sallyport.areas.factors.enrolment import repo as links_repo
from sallyport.areas.factors.enrolment.link import PATH
from sallyport.areas.factors.enrolment.mailing import Mailing
from sallyport.areas.factors.enrolment.service import EnrolmentLinks, Host
from sallyport.areas.factors.me import pages, repo
from sallyport.areas.factors.me.host import Surroundings
from sallyport.areas.factors.me.service import OwnFactors
from sallyport.areas.factors.me.sessions import PeopleSessions
from sallyport.areas.tenancy.guesses import guesses_of_all_nodes
from sallyport.areas.users.area import UsersArea
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict
from sallyport.base.text import fold
from sallyport.nodes.periodic import every
from sallyport.settings.settings import Settings
from sallyport.store.erasure import Rows
from sallyport.store.model import Tx
from sallyport.web.operation import Operations
from sallyport.web.people.site import PeopleSite
from sallyport.web.scope import Gate

WRONG_PASSWORDS: Final = 30
"""Limit of the wrong passwords and links of one address in a short time."""
PURGE_S: Final = 3600.0
NO_SITE: Final = "links need the settings people_bind and public_url, at which people open the pages"


class MeArea(Area):
    """Self-service of people: enrolment links, sign-ins, and the pages `/me`."""

    erased_rows = (Rows("people_sessions"), Rows("enrolment_links", "enrolment links"))

    def __init__(
        self, parts: Parts, domains: Domains, factors: FactorsArea, users: UsersArea, around: Surroundings
    ) -> None:
        store, clock, mail = parts.store, parts.clock, parts.mail
        factors.stepups.lock_by(around.passwords)
        self._settings, self._administrators = parts.settings, factors.administrators
        life_us = parts.settings.enrolment_link_hours * 3600 * SECOND
        host = Host(
            lambda: factors.passkeys.host,
            lambda domain_id: domains.table.present(domain_id).first_factor is FirstFactor.LOCAL,
            users.seeds.login_name,
            factors.administrators,
        )
        self.links = EnrolmentLinks(store, host, clock, life_us=life_us)
        self.mailing = Mailing(
            parts.leader_store,
            mail,
            self.link_to,
            lambda domain_id: domains.table.present(domain_id),  # noqa: PLW0108  the table is replaced
            clock,
            life_us=life_us,
        )
        self.sessions = PeopleSessions(store, clock)
        self.own = OwnFactors(
            store,
            factors.passkeys,
            factors.bypass_codes,
            users.seeds,
            factors.sign_ins,
            self.sessions,
            around,
            mail,
            clock,
        )
        guesses = guesses_of_all_nodes(parts.notices, "person", clock, burst=WRONG_PASSWORDS)
        self.me = pages.MePages(
            pages.Parts(
                self.sessions, self.own, factors.remembered, self.links, around, guesses, factors.denials, clock
            )
        )
        self.leader_tasks = (
            self.mailing.run,
            partial(every, PURGE_S, lambda: self.links.purge(parts.settled()), failure="enrolment_purge_failed"),
            partial(every, PURGE_S, self.sessions.purge, failure="sign_in_purge_failed"),
        )
        factors.denials.on_denial(write=_end_all)

    def apply(self, settings: Settings) -> None:
        """Make links that are valid for the time of the settings."""
        self.links.life_us = self.mailing.life_us = settings.enrolment_link_hours * 3600 * SECOND

    def forget_users(self, tx: Tx, domain_id: int, names: Sequence[str]) -> None:
        """End the sign-ins and the links of users that lose their access, in the transaction of this change."""
        _end_of(tx, domain_id, [fold(each) for each in names])

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of enrolment."""
        return [enrolment_api.operations(self.links, self._administrators, self.link_to, self.mailing.check, gate)]

    def people_routes(self, site: PeopleSite) -> Sequence[BaseRoute]:
        """Return the pages of self-service."""
        return self.me.routes(site)

    def link_to(self, secret: str) -> str:
        """Return the address of an enrolment link. Raises Conflict if the settings allow none."""
        if self._settings.people_bind is None:
            raise Conflict(NO_SITE)
        return f"{self._settings.public_url}{PATH}{secret}"

    def void(self, tx: Tx, at: int) -> None:
        """End all links and sign-ins, because they may have been used or have ended after the backup."""
        links_repo.void(tx)
        repo.void(tx)


def _end_all(tx: Tx, denial: Denial) -> None:
    """End the sign-ins and the enrolment link of a person whose password is known to others."""
    _end_of(tx, denial.domain_id, [fold(denial.user)])


def _end_of(tx: Tx, domain_id: int, keys: Sequence[str]) -> None:
    repo.end_of_people(tx, domain_id, keys)
    links_repo.end_of_people(tx, domain_id, keys)
