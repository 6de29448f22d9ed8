"""The version of this program, as the agent tells it."""

from functools import cache


@cache
def own_version() -> str:
    """As it is installed."""
    from importlib.metadata import version  # takes as long to import as the rest of the agent's beginning

    return version("sallyport")
