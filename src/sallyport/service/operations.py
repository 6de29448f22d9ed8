"""All operations and pages that the service serves over HTTP.

They call the same services as the commands of the control socket (`commands`).
"""

from collections.abc import Sequence

import trio
from starlette.routing import BaseRoute

from sallyport.areas.agents import operations as agents_api
from sallyport.areas.audit import operations as audit_api
from sallyport.areas.clients import operations as clients_api
from sallyport.areas.devices import operations as devices_api
from sallyport.areas.did import public as did_pages
from sallyport.areas.did.credentials import operations as credentials_api
from sallyport.areas.did.dids import operations as dids_api
from sallyport.areas.did.presentations import operations as presentations_api
from sallyport.areas.did.wallets import operations as wallets_api
from sallyport.areas.directory import operations as directories_api
from sallyport.areas.domains import operations as domains_api
from sallyport.areas.dynamic import operations as dynamic_api
from sallyport.areas.events import operations as events_api
from sallyport.areas.login.first import operations as first_factors_api
from sallyport.areas.mfa import operations as providers_api
from sallyport.areas.passwords import operations as policies_api
from sallyport.areas.policy.bypass import operations as bypass_api
from sallyport.areas.policy.lockouts import operations as lockouts_api
from sallyport.areas.policy.rules import operations as rules_api
from sallyport.areas.preview import operations as previews_api
from sallyport.areas.sessions import operations as sessions_api
from sallyport.areas.tenancy.keys import operations as keys_api
from sallyport.areas.users import page as enrolments_page
from sallyport.areas.users.accounts import operations as users_api
from sallyport.areas.users.groups import operations as groups_api
from sallyport.areas.users.instances import operations as instances_api
from sallyport.base.clock import now_us
from sallyport.console.pages import ALL
from sallyport.console.site import Site
from sallyport.console.status import StatusLine
from sallyport.console.visit import Services
from sallyport.service.app import App
from sallyport.service.nodes import answers_of
from sallyport.shell.command import Commands
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


def operations(app: App, gate: Gate) -> list[Operations]:
    """Return every operation of the API: those of the interface document, and the additional operations."""
    return [
        devices_api.operations(app.devices, app.dictionary.name, gate, now_us),
        sessions_api.operations(app.sessions, app.value_name, gate),
        dynamic_api.operations(app.dynamic, gate),
        clients_api.operations(app.clients, gate, app.devices.heard),
        domains_api.operations(app.domains, app.enforcement, app.removal, gate),
        *previews_api.operations(app.preview, app.logins.rule_test, app.rules.translation, gate, now_us),
        providers_api.operations(app.logins.providers, gate, now_us),
        first_factors_api.operations(app.logins.first_settings, app.logins.trials, app.domains, gate),
        rules_api.operations(app.rules, app.logins.rule_names, gate),
        bypass_api.operations(app.logins.bypass, gate),
        policies_api.operations(app.policies, gate),
        events_api.operations(app.events, app.domains, gate),
        lockouts_api.operations(app.logins.lockouts, gate),
        audit_api.operations(app.audit, gate),
        wallets_api.operations(app.did.wallets, gate),
        presentations_api.operations(app.did.verifier, app.did.presentations, gate),
        keys_api.operations(app.keys, app.agent_file, gate),
        instances_api.operations(app.instances, gate),
        directories_api.operations(app.directory, app.domain_ids, gate),
        directories_api.agent_operations(app.directory.runs, gate),
        agents_api.operations(app.agents, gate),
        groups_api.operations(app.groups, gate),
        users_api.operations(app.accounts, app.seeds, app.enrolment_link, gate),
        dids_api.operations(app.did.dids, gate),
        credentials_api.schema_operations(app.did.schemas, gate),
        credentials_api.operations(app.did.credentials, now_us, gate),
    ]


def pages(app: App, gate: Gate, site: Site) -> list[BaseRoute]:
    """Return the pages: those of the console, and those that need no token, which are the page of an enrolment link and
    the resolution of DIDs."""
    return [*site.routes(), *enrolments_page.routes(app.seeds), *did_pages.routes(app.did, gate)]


def console(app: App, gate: Gate, declared: Sequence[Operations], commands: Commands, stopping: trio.Event) -> Site:
    """Return the console, which runs these operations and commands. stopping: is set when the service begins to
    stop."""
    services = Services(
        declared,
        commands,
        gate,
        app.domains,
        app.tenancy,
        app.console_sessions,
        app.events,
        app.settings,
        stopping,
        app.open_id,
        StatusLine(app.version, app.settings.node, app.copies.last_backup, app.clock),
        app.clock,
    )
    return Site(ALL, services, app.settings.public_url, answers_of(app))
