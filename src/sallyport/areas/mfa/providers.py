"""The providers: built-in ones, and those that installed packages declare by entry points.

A package declares its class in its pyproject.toml:

    [project.entry-points."sallyport.mfa"]
    acme = "acme_sallyport:Acme"
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

import structlog

from sallyport.areas.mfa.duo import Duo
from sallyport.areas.mfa.host import ConfiguredProvider, Fields
from sallyport.areas.mfa.okta import Okta
from sallyport.areas.mfa.own import Own
from sallyport.areas.mfa.privacyidea import PrivacyIdea
from sallyport.areas.mfa.radius import Radius
from sallyport.areas.mfa.totp import Totp
from sallyport.areas.mfa.wallet import Wallet
from sallyport.areas.mfa.webhook import Webhook

GROUP: Final = "sallyport.mfa"
BUILT_IN: Final[tuple[type[ConfiguredProvider], ...]] = (
    Totp,
    Duo,
    Okta,
    PrivacyIdea,
    Webhook,
    Radius,
    Wallet,
    Own,
)

_METHODS: Final = ("enrolled", "start", "poll", "verify", "cancel", "aclose")


def available(found: Iterable[EntryPoint] | None = None) -> dict[str, type[ConfiguredProvider]]:
    """Return all providers by name, built-in ones first.

    found: the entry points to load; if it is None, the entry points of all installed packages are loaded. A class is
    skipped if it cannot be loaded, if it lacks a method of a provider, or if another provider has the same name. The
    log then has a warning.
    """
    known: dict[str, type[ConfiguredProvider]] = {provider.name: provider for provider in BUILT_IN}
    for point in entry_points(group=GROUP) if found is None else found:
        provider = _load(point)
        if provider is None:
            continue
        if provider.name in known:
            _leave_out(point, "a provider of this name exists already")
        else:
            known[provider.name] = provider
    return known


def _load(point: EntryPoint) -> type[ConfiguredProvider] | None:
    try:
        loaded: object = point.load()
    except Exception as error:  # an installed module may raise anything
        _leave_out(point, f"it cannot be loaded ({type(error).__name__})")
        return None
    if not _is_provider(loaded):
        _leave_out(point, "it does not have the attributes and methods of a provider")
        return None
    return cast("type[ConfiguredProvider]", loaded)


def _is_provider(loaded: object) -> bool:
    fields, name = getattr(loaded, "fields", None), getattr(loaded, "name", None)
    return (
        isinstance(loaded, type)
        and isinstance(name, str)
        and name != ""
        and isinstance(getattr(loaded, "asks_for_codes", None), bool)
        and isinstance(fields, type)
        and issubclass(fields, Fields)
        and all(callable(getattr(loaded, method, None)) for method in _METHODS)
    )


def _leave_out(point: EntryPoint, reason: str) -> None:
    structlog.get_logger().warning("mfa_provider_left_out", entry_point=point.name, reason=reason)
