"""What the command line asks: provider.get."""

from typing import cast

from sallyport.base.command import Arguments, Command, command
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON
from sallyport.mfa.service import Providers


class OfDomain(Arguments):
    """A domain by its id."""

    domain_id: int


def commands(service: Providers) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def get(wanted: OfDomain) -> JSON:
        try:
            name, timeout_s, fields = service.shown(wanted.domain_id)
        except NotFound:
            return None
        return {"provider": name, "timeout_s": timeout_s, "fields": cast(dict[str, JSON], fields)}

    return {"provider.get": command(OfDomain, get)}
