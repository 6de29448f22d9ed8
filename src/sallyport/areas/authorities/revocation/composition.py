"""The parts of revocation, connected, and the rules of each authority."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cryptography import x509

from sallyport.areas.authorities.authority import Authority, AuthorityTable, Revocation
from sallyport.areas.authorities.revocation.certified import CertifiedUsers, Revoke
from sallyport.areas.authorities.revocation.fetching import ListFetcher
from sallyport.areas.authorities.revocation.listing import RevocationListEntry, facts_of, shown_list
from sallyport.areas.authorities.revocation.responders import Responders
from sallyport.areas.authorities.revocation.revoked_repo import RevokedCertificates
from sallyport.areas.authorities.revocation.service import RevocationChecks
from sallyport.areas.authorities.revocation.sources import RevocationLists
from sallyport.areas.authorities.revocation.state import RevocationRules, RevocationState
from sallyport.areas.entrance import Parts
from sallyport.metrics import RevocationMetrics

NO_RULES: Final[Mapping[int, RevocationRules]] = {}


def rules_of(authority: Authority) -> RevocationRules:
    """Return how the revocation of an authority's certificates is checked."""
    return RevocationRules(
        authority.id,
        authority.tenant_id,
        authority.certificates,
        authority.revocation is Revocation.HARD,
        authority.crl_addresses,
        authority.ocsp_address,
        authority.ocsp_nonce,
        authority.use_certificate_addresses,
        frozenset(map(bytes.fromhex, authority.keys)),
    )


class RevocationService:
    """The revocation of the certificates of all authorities. authorities: a function that returns the authorities.
    revoke: see `certified.Revoke`."""

    def __init__(self, parts: Parts, authorities: Callable[[], AuthorityTable], revoke: Revoke) -> None:
        self._authorities = authorities
        self._clock = parts.clock
        self._table: AuthorityTable | None = None
        self._rules = NO_RULES
        self._of: dict[int, tuple[Authority, RevocationRules]] = {}
        self.metrics = RevocationMetrics(parts.registry)
        self.lists = RevocationLists(parts.store, parts.notices, parts.clock)
        self.responders = Responders(
            parts.http, parts.clock, self.metrics, RevokedCertificates(parts.store, parts.clock)
        )
        self.fetcher = ListFetcher(
            self.lists, parts.leader_store, parts.http, parts.clock, lambda: self.rules, self.metrics
        )
        self.checks = RevocationChecks(self.lists, self.responders, parts.clock)
        self.certified = CertifiedUsers(
            parts.store,
            parts.leader_store,
            self.checks,
            self.lists,
            self.responders,
            parts.clock,
            lambda: self.rules,
            revoke,
        )
        self.metrics.lists = lambda: [facts_of(each, self._clock()) for each in self.lists.all()]

    @property
    def rules(self) -> Mapping[int, RevocationRules]:
        """The rules of each authority, by its id. The object of an authority stays the same until it is changed."""
        table = self._authorities()
        if table is not self._table:
            self._of = {each.id: self._kept(each) for each in table.by_id.values()}
            self._rules = {number: rules for number, (_, rules) in self._of.items()}
            self._table = table
        return self._rules

    def _kept(self, authority: Authority) -> tuple[Authority, RevocationRules]:
        before = self._of.get(authority.id)
        return before if before is not None and before[0] is authority else (authority, rules_of(authority))

    def forget(self) -> None:
        """Drop everything in memory, because the store was replaced."""
        self.checks.forget()
        self.certified.forget()

    def known(self, chain: Sequence[x509.Certificate], authority: Authority) -> RevocationState | None:
        """Return the state of a verified chain if it is known without asking, else None."""
        state = self.checks.known(chain, self._rules_of(authority))
        if state is not None:
            self.metrics.checked(state.status.value)
        return state

    async def state(self, chain: Sequence[x509.Certificate], authority: Authority) -> RevocationState:
        """Return the state of a verified chain. Ask for it if it is not known."""
        state = await self.checks.state(chain, self._rules_of(authority))
        self.metrics.checked(state.status.value)
        return state

    def noted(
        self,
        chain: Sequence[x509.Certificate],
        authority: Authority,
        domain_id: int,
        user: str,
        state: RevocationState,
    ) -> None:
        """Note a login whose certificate was accepted, see `CertifiedUsers.note`."""
        self.certified.note(chain, self._rules_of(authority), domain_id, user, state)

    def _rules_of(self, authority: Authority) -> RevocationRules:
        """Return the rules of an authority, also of one that was removed during the login."""
        return self.rules.get(authority.id) or rules_of(authority)

    def entries(self, authority: Authority) -> list[RevocationListEntry]:
        """Return the lists of an authority, ordered by address."""
        now, own = self._clock(), self.lists.of(authority.id)
        return [shown_list(own[address], now) for address in sorted(own)]
