"""The entrance of factors."""

from collections.abc import Sequence

from starlette.routing import BaseRoute

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.factors.bypass_codes import operations as bypass_codes_api
from sallyport.areas.factors.bypass_codes import repo as bypass_codes
from sallyport.areas.factors.bypass_codes.service import BypassCodes
from sallyport.areas.factors.denials import Denials
from sallyport.areas.factors.enrolment import people_repo
from sallyport.areas.factors.enrolment.challenge import ChallengeLinks
from sallyport.areas.factors.names import release_name, release_names
from sallyport.areas.factors.openid.page import SignInFactor
from sallyport.areas.factors.openid.service import CompanySignIns, OfDomains
from sallyport.areas.factors.pages.factor import AppFactor, BypassFactor, PageFactor, PasskeyFactor
from sallyport.areas.factors.pages.mail import MailFactor
from sallyport.areas.factors.pages.mfa import StepUpPages
from sallyport.areas.factors.passkeys import operations as passkeys_api
from sallyport.areas.factors.passkeys import repo
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.passkeys.service import Passkeys
from sallyport.areas.factors.pauses import operations as pauses_api
from sallyport.areas.factors.pauses.service import Pauses
from sallyport.areas.factors.remembered import operations as remembered_api
from sallyport.areas.factors.remembered import repo as remembered
from sallyport.areas.factors.remembered.service import RememberedStations
from sallyport.areas.factors.stepup import repo as stepups
from sallyport.areas.factors.stepup.service import StepUps
from sallyport.areas.mfa.provider import Code
from sallyport.areas.users.area import UsersArea
from sallyport.metrics import PauseMetrics, StepUpMetrics
from sallyport.store.erasure import Rows
from sallyport.store.model import Tx
from sallyport.store.sealed import Sealed
from sallyport.web.operation import Operations
from sallyport.web.people.site import PeopleSite
from sallyport.web.scope import Gate


class FactorsArea(Area):
    """The factors of people that the service checks itself."""

    erased_rows = (
        Rows("passkey_challenges", key="binding_hash"),
        Rows("passkeys", "passkeys"),
        Rows("prompt_pauses"),
        Rows("stepups"),
        Rows("bypass_codes", "bypass codes"),
        Rows("remembered_stations", "remembered stations"),
    )
    sealed = (Sealed("bypass_codes", "code_hash", ("id",), bypass_codes.IDENTITY),)

    def __init__(self, parts: Parts, users: UsersArea, of_domains: OfDomains) -> None:
        self.administrators = users.administrators
        users.service.before_renaming(release_names)
        self.pauses = Pauses(parts.store, PauseMetrics(parts.registry), parts.clock)
        self.denials = Denials(parts.store, parts.notices, self.pauses, parts.clock)
        self._clock, self._store, self._fields_of = parts.clock, parts.store, of_domains.fields_of
        self.passkeys = Passkeys(parts.store, parts.settings.public_url, parts.clock)
        self.bypass_codes = BypassCodes(parts.store, parts.vault, users.seeds.login_name, parts.clock)
        self.remembered = RememberedStations(parts.store, parts.clock)
        self.denials.on_denial(write=self.remembered.forget_denied)
        self._seeds = users.seeds
        site = parts.settings.public_url if parts.settings.people_bind is not None else ""
        metrics, mail = StepUpMetrics(parts.registry), parts.mail
        self.stepups = StepUps(
            parts.store, parts.vault, parts.notices, self.denials, metrics, site, parts.clock, mail=mail
        )
        self.challenge_links = ChallengeLinks(parts.store, self.pauses, users.administrators, site, parts.clock)
        self.stepups.offer("passkey", self._has_passkey)
        self.stepups.offer("totp", self._has_seed)
        self.stepups.offer("bypass", lambda person: self.bypass_codes.has_code(person.domain_id, person.name))
        self.stepups.accept_codes("bypass", self._spend_bypass_code)
        self.leader_tasks = (self.stepups.purge, self.pauses.run)
        factors: tuple[PageFactor, ...] = (
            PasskeyFactor(self.passkeys),
            AppFactor(self._seeds, parts.clock),
            BypassFactor(self._spend_bypass_code),
        )
        self.stepup_pages = StepUpPages(self.stepups, factors, parts.clock)
        self.sign_ins = CompanySignIns(of_domains, parts.vault, site, parts.clock)
        self._sign_in = SignInFactor(self.sign_ins, self.stepup_pages)
        self.stepup_pages.add(self._sign_in)
        self.stepups.offer("oidc", self.sign_ins.has, self.sign_ins.check)
        if parts.mail.is_on:
            by_mail = MailFactor(parts.mail, self._address, self.stepups, parts.vault)
            self.stepup_pages.add(by_mail)
            self.stepups.offer("mail", by_mail.has)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of passkeys, bypass codes, pauses of prompts and remembered stations."""
        return [
            passkeys_api.operations(self.passkeys, self.administrators, gate),
            bypass_codes_api.operations(
                self.bypass_codes, self.administrators, self._takes_bypass_codes, self._clock, gate
            ),
            pauses_api.operations(self.pauses, gate),
            remembered_api.operations(self.remembered, gate),
        ]

    def people_routes(self, site: PeopleSite) -> Sequence[BaseRoute]:
        """Return the pages of step-ups, and the routes of company sign-ins."""
        return [*self.stepup_pages.routes(site), *self._sign_in.routes(site)]

    async def prepare(self) -> None:
        """Warn in the log about passkeys that cannot be used."""
        await self.passkeys.warn()

    def void(self, tx: Tx, at: int) -> None:
        """Delete the challenges, the step-ups and the bypass codes, because they may have been used after the backup.
        Also delete the remembered stations, because they may have been forgotten after it."""
        repo.delete_challenges(tx)
        stepups.void(tx)
        bypass_codes.delete_all(tx)
        remembered.delete_all(tx)

    def release(self, tx: Tx, domain_id: int, name: str) -> None:
        """Delete the factors under the name of a person whom a directory does not have any more."""
        release_name(tx, domain_id, name, self._clock())

    async def _address(self, person: Person) -> str:
        return await self._store.read(lambda tx: people_repo.email_of(tx, person.domain_id, person.key))

    def _takes_bypass_codes(self, domain_id: int) -> bool:
        own = self._fields_of(domain_id)
        return own is not None and "bypass" in own.factors.split(",")

    async def _has_passkey(self, person: Person) -> bool:
        host = self.passkeys.host
        return any(each.usable(host) for each in await self.passkeys.of_person(person))

    async def _has_seed(self, person: Person) -> bool:
        return await self._seeds.seed(person.domain_id, person.name) is not None

    async def _spend_bypass_code(self, person: Person, code: Code) -> bool:
        """Use a bypass code that was typed at the prompt of a device. With CHAP, there is no text to compare with."""
        return code.text is not None and await self.bypass_codes.spend(person.domain_id, person.name, code.text)
