"""The login rules of all domains, and their changes."""

from collections.abc import Mapping, Sequence

from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON
from sallyport.policy.rules import repo
from sallyport.policy.rules.match import DomainRules
from sallyport.policy.rules.repo import OfDomain
from sallyport.policy.rules.rule import UNMATCHED, Definition, Given, Rule
from sallyport.policy.rules.translation import Translation, check_clients
from sallyport.radius.dictionary import Dictionary
from sallyport.store import audit
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration


class LoginRules:
    """The login rules of all domains, in memory. A change applies when its call returns."""

    def __init__(self, configuration: Configuration, dictionary: Dictionary, clock: Clock = now_us) -> None:
        self.translation = Translation(dictionary)
        self._configuration = configuration
        self._clock = clock
        known = repo.Known()
        empty: Mapping[int, OfDomain] = {}
        self._table = configuration.hold(lambda tx: repo.load(tx, known), empty)

    def of(self, domain_id: int) -> DomainRules | None:
        """Return a domain's enabled rules, or None if no rule is enabled."""
        own = self._table.value.get(domain_id)
        return None if own is None else own.enabled

    def all_of(self, domain_id: int) -> Sequence[Rule]:
        """Return a domain's rules, including disabled ones, ordered by id."""
        own = self._table.value.get(domain_id)
        return () if own is None else own.rules

    async def add(self, domain_id: int, fields: Given) -> int:
        """Add a rule, and return its id. fields: the fields of the rule, at least name and action.

        Raises Invalid if a field has an invalid value. Raises Conflict if the domain has too many rules.
        """
        definition = Definition("", UNMATCHED).changed(self._translated(fields))
        _check_scope(None, definition, everyone=fields.everyone)
        attributes = self.translation.replies(definition.vlan, definition.reply_attributes)
        at = self._clock()

        def work(tx: Tx) -> int:
            rule_id = repo.add(tx, domain_id, definition, attributes, at)
            _record(tx, "rule.add", domain_id, f"{rule_id} {definition.name}", at, {}, definition.as_json())
            return rule_id

        return await self._configuration.change(work)

    async def update(self, domain_id: int, rule_id: int, fields: Given) -> None:
        """Change those fields of a rule that are present. Raises NotFound if the domain has no such rule. Raises
        Invalid, Conflict."""
        changes, at = self._translated(fields), self._clock()

        def work(tx: Tx) -> None:
            before = repo.get(tx, domain_id, rule_id)
            definition = before.changed(changes)
            _check_scope(before, definition, everyone=fields.everyone)
            attributes = self.translation.replies(definition.vlan, definition.reply_attributes)
            repo.update(tx, domain_id, rule_id, definition, attributes, at)
            if definition != before:
                _record(
                    tx, "rule.update", domain_id, f"{rule_id} {before.name}", at, before.as_json(), definition.as_json()
                )

        await self._configuration.change(work)

    async def delete(self, domain_id: int, rule_ids: Sequence[int]) -> int:
        """Delete rules, and return their number. Raises NotFound if one of them does not exist; then none is
        deleted."""
        at, wanted = self._clock(), list(dict.fromkeys(rule_ids))

        def work(tx: Tx) -> int:
            for rule_id in wanted:
                rule = repo.get(tx, domain_id, rule_id)
                repo.delete(tx, rule_id)
                _record(tx, "rule.delete", domain_id, f"{rule_id} {rule.name}", at, rule.as_json(), {})
            return len(wanted)

        return await self._configuration.change(work)

    def _translated(self, fields: Given) -> dict[str, object]:
        """Return the present fields in the form of `Definition`. Raises Invalid."""
        kept = fields.given()
        if fields.serviceTypes is not None:
            kept["service_types"] = tuple(self.translation.service_types(fields.serviceTypes))
        if fields.media is not None:
            kept["media"] = tuple(self.translation.media(fields.media))
        check_clients(fields.clients or ())
        return kept


def _check_scope(before: Definition | None, now: Definition, *, everyone: bool) -> None:
    """Check that an admin has confirmed a rule that exempts every login from the second factor. Raises Invalid.

    A stored rule that already exempts every login needs no confirmation, unless the change enables it.
    """
    if everyone and now.scopes:
        raise Invalid.about(
            f"everyone confirms a rule without a scope, but this rule has the scopes {', '.join(now.scopes)}; omit "
            "everyone, or clear these scopes",
            "everyone",
        )
    stays = before is not None and before.exempts_all and before.enabled >= now.enabled
    if now.exempts_all and not everyone and not stays:
        raise Invalid.about(
            "the rule would admit everyone without a second factor: give a scope such as users, groups or clients, or "
            "confirm it with everyone: true",
            "everyone",
        )


def _record(
    tx: Tx, action: str, domain_id: int, rule: str, at: int, before: dict[str, JSON], after: dict[str, JSON]
) -> None:
    audit.record_in(tx, action, domain_id, f"rule {rule}", audit.changed(before, after), at=at)
