"""Settings of endpoint agents in files (`sallyport apply`): those of a domain, and those of one instance."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from pydantic import Field

from sallyport.areas.agents import repo
from sallyport.areas.agents.bodies import STORED, SettingsFields
from sallyport.areas.agents.service import Agents
from sallyport.areas.configured import Change, Kind, Mention, Stored
from sallyport.areas.users.instances import repo as instances_repo
from sallyport.base.errors import Invalid
from sallyport.store.model import Tx
from sallyport.web.bodies import NameOrNone

INSTANCE = "instance"


class ConfiguredSettings(SettingsFields):
    """Settings of endpoint agents in a file."""

    instance: NameOrNone = Field(default="", description="Name of the instance. It is empty for all of the domain.")


class AgentSettingsKind(Kind[ConfiguredSettings]):
    """Settings of endpoint agents. An absent setting has the value of the domain, or its default."""

    name = "agent_settings"
    body = ConfiguredSettings
    level = 3
    key = INSTANCE
    refers = "domain"
    mentioned = frozenset({INSTANCE})
    names = "select id, domain_id as owner, name from endpoint_instances"
    has_nameless = True
    changed_by = MappingProxyType({"/api/v1/agent/setSettings": "instanceId"})
    shown_by = MappingProxyType({"/api/v1/agent/getSettings": "instanceId"})

    def __init__(self, service: Agents) -> None:
        self._service = service
        self._changed = set[int]()

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        for domain_id, domain in domains.items():
            for instance_id, name, stored in repo.settings_of_domain(tx, domain_id):
                own = {field: stored.get(STORED.get(field, field)) for field in SettingsFields.model_fields}
                given = {field: value for field, value in own.items() if value is not None}
                yield Stored(instance_id, {"domain": domain, INSTANCE: name, **given})

    def mentions(self, body: ConfiguredSettings) -> Iterable[Mention]:
        return [Mention(INSTANCE, INSTANCE, body.instance)] if body.instance else ()

    def values(self, body: ConfiguredSettings) -> dict[str, object]:
        return {field: getattr(body, field) for field in SettingsFields.model_fields}

    def check(self, body: ConfiguredSettings, before: Stored | None) -> None:
        if all(value is None for value in self.values(body).values()):
            raise Invalid("has no setting: remove the object, or give one")

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[ConfiguredSettings]]) -> None:
        for each in changes:
            instance_id = int(each.before.id) if each.before else 0
            if each.before is None and each.body is not None and each.body.instance:
                (instance_id,) = instances_repo.ids_named(tx, each.domain_id, [each.body.instance])
            new = each.body.given() if each.body else {}
            self._service.set_settings_in(tx, each.domain_id, instance_id, new)
            self._changed.add(instance_id)

    def written(self) -> None:
        while self._changed:
            self._service.states.touch(self._changed.pop())
