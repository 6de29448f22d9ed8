"""What the command line asks: first_factor.check, first_factor.get, first_factor.set."""

from typing import cast

from pydantic import Field

from sallyport.base.command import Arguments, Command, HexOctets, command
from sallyport.base.wire import JSON
from sallyport.domains.bodies import AnyFirstFactor
from sallyport.domains.service import Domains
from sallyport.login.first.service import FirstFactors
from sallyport.login.first.trial import Trials
from sallyport.outgoing.errors import ADDRESS_NOT_ALLOWED


class GetFirstFactor(Arguments):
    """domain: a name or an id."""

    domain: str


class SetFirstFactor(Arguments):
    """domain: a name or an id. fields: of kinds by name, as SetFirstFactor has them."""

    domain: str
    first_factor: AnyFirstFactor
    fields: dict[str, dict[str, object]] = Field(default_factory=dict)


class CheckFirstFactor(Arguments):
    """domain: a name or an id. password: its octets in hex. mschap: by MS-CHAPv2, else by PAP."""

    domain: str
    user: str
    password: HexOctets
    mschap: bool = False


def commands(service: FirstFactors, trials: Trials, domains: Domains) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def get(wanted: GetFirstFactor) -> JSON:
        domain = domains.anywhere(wanted.domain)
        shown = cast(dict[str, JSON], service.shown(domain.id))
        return {"domain": domain.name, "firstFactor": domain.first_factor.value, **shown}

    async def set_(wanted: SetFirstFactor) -> JSON:
        await service.set(domains.anywhere(wanted.domain), wanted.first_factor, wanted.fields)
        return await get(GetFirstFactor(domain=wanted.domain))

    async def check(wanted: CheckFirstFactor) -> JSON:
        domain = domains.anywhere(wanted.domain)
        told = await trials.run(domain, wanted.user, bytes.fromhex(wanted.password), mschap=wanted.mschap)
        denied = any(ADDRESS_NOT_ALLOWED in step for step in told.steps)
        advice = service.egress_advice(domain) if denied else []
        return {"reason": told.reason.value, "steps": [*told.steps, *advice]}

    return {
        "first_factor.check": command(CheckFirstFactor, check),
        "first_factor.get": command(GetFirstFactor, get),
        "first_factor.set": command(SetFirstFactor, set_),
    }
