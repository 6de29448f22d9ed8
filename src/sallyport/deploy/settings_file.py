"""Generates the file `/etc/sallyport/sallyport.toml` that `server install` writes. The file contains every setting, and
is generated from the declarations of the settings."""

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sallyport.host.systemd import CONFIG_FILE, DATA_DIR
from sallyport.settings.limits import DEFAULTS, LIMITS
from sallyport.settings.settings import LIVE, Settings
from sallyport.settings.values import Address

_HEAD: Final = f"""\
# {CONFIG_FILE}: the settings of the service. A setting behind a # shows its default.
# To change a setting, remove the # before its name.
# After a change, run: sudo systemctl reload sallyport. It names the settings that need a restart instead.
# After a change of ports or paths, first run: sudo sallyport server install. It gives the unit the necessary rights.
# An environment variable of the service (SALLYPORT_ and the name in capitals) overrides this file.
"""
TABLES: Final = frozenset({"limits", "identity_providers"})
"""The settings that are tables."""
_PROVIDERS: Final = """
# Identity providers of the console: a table [identity_providers.NAME] for each one, as in the documentation, Console,
# Sign in through an identity provider. They cannot be set in the environment.
"""
_LIMITS: Final = """
# Most rows of each kind that a tenant may have.
# [limits]
"""
_WIDTH: Final = 118


def shown(value: object) -> str:
    """Return the value of a setting as text. Return an empty text if the setting has no value."""
    if value is None or value is DEFAULTS or value == {}:
        return ""
    if isinstance(value, tuple) and not isinstance(value, Address):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Path) and not value.is_absolute():
        return f"./{value}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def without_default(name: str) -> str:
    """Return a text about a setting without a default. The text tells what happens if the setting is not set. Return an
    empty text if the setting has a default."""
    extra = Settings.model_fields[name].json_schema_extra
    return str(extra["unset"]) if isinstance(extra, dict) else ""


def change(name: str) -> str:
    """Return which action applies a change of a setting: `reload` or `restart`."""
    return "reload" if name in LIVE else "restart"


def settings_file() -> str:
    """Return the text of the settings file. The text sets only `data_dir`. Each other setting is commented out, and
    shows its default."""
    return _HEAD + "".join(_settings()) + _PROVIDERS + _LIMITS + "".join(_limits())


def _settings() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        if name in TABLES:  # the tables are at the end of the file
            continue
        words = str(field.description) + (f". Empty: {without_default(name)}" if without_default(name) else "")
        text = words[0].upper() + words[1:].replace("`", "") + "."
        lines = textwrap.wrap(text.lstrip("`"), _WIDTH, break_on_hyphens=False)
        yield "\n" + "".join(f"# {line}\n" for line in lines)
        given = str(DATA_DIR) if name == "data_dir" else field.default
        yield f"{'' if name == 'data_dir' else '# '}{name} = {_toml(given)}\n"


def _limits() -> Iterator[str]:
    for limit in LIMITS:
        yield f"# {f'{limit.name} = {limit.most}':<34}# {limit.counts}\n"


def _toml(value: object) -> str:
    is_bare = isinstance(value, bool | int | float)
    return shown(value) if is_bare else json.dumps(shown(value))
