"""The operations, the pages and the console of all areas, as HTTP serves them."""

from collections.abc import Sequence

import trio
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from sallyport.console.pages import ALL
from sallyport.console.site import Site
from sallyport.console.visit import Services, StatusLine
from sallyport.nodes.answers import OwnAnswers, SharedAnswers, SlowAnswers
from sallyport.service.app import App
from sallyport.shell.command import Commands
from sallyport.web.handling import Observe
from sallyport.web.operation import Operations
from sallyport.web.people.site import PeopleSite
from sallyport.web.scope import Gate


def gate_of(app: App) -> Gate:
    """Return the checks before operations."""
    return Gate(app.tenancy.authentication, app.domains.service, app.configured.managed)


def operations(app: App, gate: Gate) -> list[Operations]:
    """Return every operation of the API: those of the interface document, and the additional operations."""
    return [declared for area in app.areas for declared in area.operations(gate)]


def pages(app: App, gate: Gate, site: Site) -> list[BaseRoute]:
    """Return the pages: those of the console, and those that need no sign-in."""
    return [*site.routes(), *(route for area in app.areas for route in area.routes(gate))]


def people(app: App, observe: Observe) -> ASGIApp:
    """Return the app of the site of people. It has no other pages."""
    site = PeopleSite(app.parts.settings.public_url)
    return site.app([route for area in app.areas for route in area.people_routes(site)], observe)


def console(app: App, gate: Gate, declared: Sequence[Operations], commands: Commands, stopping: trio.Event) -> Site:
    """Return the console, which runs these operations and commands. stopping: is set when the service begins to
    stop."""
    settings, clock = app.parts.settings, app.parts.clock
    of_areas = [each for area in app.areas for each in area.pages]
    services = Services(
        declared,
        commands,
        gate,
        app.domains.service,
        app.tenancy.service,
        app.signin.sessions,
        app.signin.sign_ins,
        app.events.service,
        settings,
        stopping,
        app.signin.open_id,
        app.configured.managed,
        StatusLine(app.version, settings.node, app.installation.copies.last_backup, clock),
        clock,
        [each.templates for each in of_areas if each.templates is not None],
    )
    store = app.parts.store
    answers: SlowAnswers = SharedAnswers(store, app.parts.cluster, app.parts.vault) if store.is_shared else OwnAnswers()
    return Site([*ALL, *of_areas], services, settings.public_url, answers)
