"""The check that the extra `postgres` is installed."""

from importlib.util import find_spec
from typing import Final

from sallyport import __version__
from sallyport.base.errors import ConfigError

NEEDED: Final = (
    "a PostgreSQL database needs the extra `postgres`: pip install "
    f"'./sallyport_radius-{__version__}-py3-none-any.whl[postgres]', with the path of your wheel"
)


def check_extra() -> None:
    """Raise ConfigError if psycopg is not installed, because PostgreSQL needs it."""
    if find_spec("psycopg") is None:
        raise ConfigError(NEEDED)
