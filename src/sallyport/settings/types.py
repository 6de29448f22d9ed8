"""The types of the settings. Each type accepts the text of an environment variable and the value in
`sallyport.toml`."""

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from sallyport.base import log
from sallyport.base.validation import unfit
from sallyport.settings.limits import DEFAULTS, MAX_LIMIT
from sallyport.settings.values import EGRESS_DEFAULT, Address, EgressRule, Network, parse_address


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _addresses(value: object) -> object:
    if isinstance(value, tuple):
        return value
    try:
        return tuple(map(parse_address, _parts(_text(value))))
    except ValueError:
        raise unfit("must be IP addresses with ports, separated by commas, such as 0.0.0.0:1812,[::]:1812") from None


def _address(value: object) -> object:
    if isinstance(value, tuple):
        return value
    try:
        return parse_address(_text(value))
    except ValueError:
        raise unfit("must be an IP address and a port, such as 127.0.0.1:8080 or [::1]:8080") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")  # noqa: TRY004  reported as any other malformed value
    return value


Addresses = Annotated[tuple[Address, ...], BeforeValidator(_addresses)]


def _limits(value: object) -> object:
    """Return the given limits, and the defaults of all other limits. Raises ValueError if a limit is unknown."""
    given = dict(part.partition("=")[::2] for part in _parts(value)) if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        raise unfit("must be limits by name, such as domains=50, wallets=20000")
    numbers = {str(name).strip(): str(most).strip() for name, most in given.items()}
    if unknown := numbers.keys() - DEFAULTS.keys():
        raise ValueError(f"there is no limit {', '.join(sorted(unknown))}; the limits are {', '.join(DEFAULTS)}")
    if not all(re.fullmatch("[0-9]{1,12}", most) for most in numbers.values()):
        raise unfit(f"must have whole numbers as values, from 0 to {MAX_LIMIT - 1}")
    return {**DEFAULTS, **{name: int(most) for name, most in numbers.items()}}


Limits = Annotated[Mapping[str, int], BeforeValidator(_limits)]


def _egress(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        rules = [part if part == EGRESS_DEFAULT else ipaddress.ip_network(part) for part in _parts(value)]
    except ValueError:
        raise unfit(
            "must be networks separated by commas, or default, such as default, 10.0.0.0/8, 2001:db8::/32"
        ) from None
    return tuple(rules) or (EGRESS_DEFAULT,)


def _networks(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return tuple(map(ipaddress.ip_network, _parts(value)))
    except ValueError:
        raise unfit("must be networks separated by commas, such as 10.0.0.0/8,2001:db8::/32") from None


def _words(value: object) -> object:
    return tuple(value.split()) if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]


def _area_levels(value: object) -> object:
    """Return the levels by area. Raises ValueError if an area or a level is unknown."""
    if isinstance(value, str):
        value = dict(_area_level(word) for word in value.split())
    if isinstance(value, dict):
        for area, level in value.items():
            if area not in log.areas():
                raise ValueError(f"unknown area {area}; the areas are {', '.join(log.areas())}")
            if level not in log.LEVELS:
                raise ValueError(f"the level of {area} must be one of {', '.join(log.LEVELS)}")
    return value


def _area_level(word: str) -> tuple[str, str]:
    area, equals, level = word.partition("=")
    if not equals:
        raise ValueError(f"{word}: must be AREA=LEVEL, such as login=debug")
    return area, level


AreaLevels = Annotated[dict[str, str], BeforeValidator(_area_levels)]


def _numbers(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(_parts(value)) or None


NumbersIfGiven = Annotated[tuple[Annotated[int, Field(ge=1)], ...] | None, BeforeValidator(_numbers)]
Networks = Annotated[tuple[Network, ...], BeforeValidator(_networks)]
EgressRules = Annotated[tuple[EgressRule, ...], BeforeValidator(_egress)]


def _hosts(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(_parts(value.lower()))


Hosts = Annotated[tuple[str, ...], BeforeValidator(_hosts)]
OneAddress = Annotated[Address, BeforeValidator(_address)]
PathIfGiven = Annotated[Path | None, BeforeValidator(lambda value: value or None)]
AddressIfGiven = Annotated[Address | None, BeforeValidator(lambda value: _address(value) if value else None)]


def base_url(value: str) -> str:
    """Return a base URL without a slash at its end. Raises ValueError if the text is not an http or https URL with a
    host."""
    if value and not (re.fullmatch(r"https?://[!-~]+", value) and _is_base(value)):
        raise unfit("must be a URL such as https://sallyport.example.com, without a user, a query and a fragment")
    return value.rstrip("/")


def _is_base(url: str) -> bool:
    """Return whether a URL has a host, and has no user, query or fragment. Raises ValueError if the text is not a
    URL."""
    parts = urlsplit(url)
    return bool(parts.hostname) and parts.port != 0 and not any(mark in url for mark in "@?#")


AddressesIfGiven = Annotated[tuple[Address, ...] | None, BeforeValidator(lambda value: _addresses(value) or None)]
