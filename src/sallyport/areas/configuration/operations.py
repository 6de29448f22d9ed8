"""Local operations: configuration.kinds, .state, .export, .apply. HTTP does not offer them, because
the files name secrets of the service's host."""

from collections.abc import Mapping
from typing import cast

import trio
from pydantic import Field

from sallyport.areas.configuration.exporting import exported
from sallyport.areas.configuration.item import Item, Plan, Prune, Sign
from sallyport.areas.configuration.schemas import schema_of, secret_names
from sallyport.areas.configuration.service import Engine
from sallyport.areas.configuration.startup import Startup
from sallyport.areas.tenancy.service import Tenancy
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON
from sallyport.shell.command import Arguments, LocalOperations


class GivenItem(Arguments):
    """An object of a file; see `Item`."""

    kind: str
    name: str
    fields: dict[str, object] = Field(repr=False)
    source: str


class Apply(Arguments):
    """Arguments of configuration.apply.

    org, tenant: the orgId and the tenantId; a tenant that does not exist is created. only: the names of kinds; all if
    empty. apply: whether to write the changes, or only to return the plan. manages: whether files manage the objects
    from now on, unlike an import. override: whether an import changes objects that files manage.
    """

    org: int
    tenant: int
    items: list[GivenItem]
    prune: Prune = Prune.NOTHING
    only: list[str] = Field(default_factory=list)
    apply: bool = False
    manages: bool = True
    override: bool = False


class Export(Arguments):
    """Arguments of configuration.export; see `Apply`."""

    org: int
    tenant: int
    only: list[str] = Field(default_factory=list)


def local_operations(engine: Engine, tenancy: Tenancy, startup: Startup) -> LocalOperations:
    """Return the local operations of configuration as code."""
    local = LocalOperations()

    @local("configuration.kinds")
    async def kinds() -> JSON:
        def described() -> JSON:
            return [
                {
                    "kind": kind.name,
                    "key": kind.key,
                    "refers": kind.refers,
                    "fields": list[JSON](kind.all_fields()),
                    "secrets": list[JSON](sorted(secret_names(kind))),
                    "texts": list[JSON](sorted(kind.texts)),
                    "schema": cast(JSON, schema_of(kind)),
                }
                for kind in engine.kinds()
            ]

        return await trio.to_thread.run_sync(described)

    @local("configuration.state")
    async def state() -> JSON:
        return await startup.shown()

    @local("configuration.export")
    async def export(wanted: Export) -> JSON:
        present = await engine.present(await tenancy.tenant_id(wanted.org, wanted.tenant), wanted.only)
        chosen = engine.kinds(wanted.only)
        return await trio.to_thread.run_sync(
            lambda: cast(JSON, {kind.name: exported(kind, present.objects[kind.name]) for kind in chosen})
        )

    @local("configuration.apply")
    async def apply(wanted: Apply) -> JSON:
        items = [Item(each.kind, each.name, each.fields, each.source) for each in wanted.items]
        present = await _present(wanted)
        if not wanted.apply or not present:  # wrong files add no tenant
            plan = await engine.plan(present, items, prune=wanted.prune, only=wanted.only, manages=wanted.manages)
        if wanted.apply:
            tenant_id = await tenancy.ensure_tenant(wanted.org, wanted.tenant)
            plan = await engine.run(
                tenant_id,
                items,
                prune=wanted.prune,
                only=wanted.only,
                manages=wanted.manages,
                override=wanted.override,
            )
        return await trio.to_thread.run_sync(_shown, plan)

    async def _present(wanted: Apply) -> int:
        try:
            return await tenancy.tenant_id(wanted.org, wanted.tenant)
        except NotFound:  # `apply` creates it
            return 0

    return local


def _shown(plan: Plan) -> JSON:
    counts: Mapping[Sign, int] = {sign: sum(each.sign is sign for each in plan.steps) for sign in Sign}
    return {
        "counts": {sign.name.lower(): count for sign, count in counts.items()},
        "steps": [
            {
                "sign": each.sign.value,
                "kind": each.kind.name,
                "name": each.name,
                "source": each.source,
                "fields": cast(JSON, dict(each.fields)) if each.sign is Sign.CHANGED else {},
            }
            for each in plan.changes
        ],
    }
