"""The extras of the distribution: packages that only some installations need."""

import sys
from importlib import import_module

from sallyport.base.errors import ConfigError


def check_extra(user: str, extra: str, module: str) -> None:
    """Import a module of an extra, or raise ConfigError. user: what needs the extra, such as a setting. The Debian
    package and the image have the packages of all extras."""
    try:
        import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{user} needs the extra `{extra}` ({error}): "
            f"{sys.prefix}/bin/pip install --require-hashes -r requirements-{extra}.lock"
        ) from None
