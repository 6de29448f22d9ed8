"""The local operation settings.show: the settings of the running service, without secrets."""

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from sallyport.base.wire import JSON
from sallyport.deploy.settings_file import change, shown, without_default
from sallyport.settings.limits import LIMITS
from sallyport.settings.settings import Settings
from sallyport.settings.values import environment_name
from sallyport.shell.command import LocalOperations

HIDDEN: Final = "***"
_SECRET: Final = re.compile(r"((?:^|[?&; ])[a-z_]*(?:password|passwd|secret|token|key)=)[^&; ]*", re.IGNORECASE)


def local_operations(present: Callable[[], Settings]) -> LocalOperations:
    """Return the local operation of the settings by its name. present: returns the settings in force."""
    local = LocalOperations()

    @local("settings.show")
    async def show() -> JSON:
        """Return each setting with its value, and whether it was set."""
        settings = present()
        found: list[JSON] = [
            {
                "name": name,
                "environment": environment_name(name),
                "value": without_secrets(shown(getattr(settings, name))),
                "isSet": name in settings.model_fields_set,
                "change": change(name),
                "unset": without_default(name),
                "description": str(field.description),
            }
            for name, field in Settings.model_fields.items()
            if name != "limits"
        ]
        found += [
            {
                "name": f"limits.{limit.name}",
                "environment": environment_name("limits"),
                "value": str(settings.limits[limit.name]),
                "isSet": settings.limits[limit.name] != limit.most,
                "change": change("limits"),
                "unset": "",
                "description": f"maximum number of {limit.counts} of a tenant",
            }
            for limit in LIMITS
        ]
        return found

    return local


def without_secrets(value: str) -> str:
    """Return the value of a setting without the passwords and keys in its URLs."""
    return " ".join(_without_secrets(word) for word in value.split(" "))


def _without_secrets(word: str) -> str:
    try:
        parts = urlsplit(word)
    except ValueError:
        return HIDDEN  # it may have a password at any place
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    netloc = f"{name}:{HIDDEN}@{host}" if at and colon else parts.netloc
    return _SECRET.sub(rf"\1{HIDDEN}", urlunsplit(parts._replace(netloc=netloc)) if netloc != parts.netloc else word)
