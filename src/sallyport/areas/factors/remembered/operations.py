"""HTTP operations of remembered stations: /ad/...RememberedStation(s). A station is remembered by a login, and not by
an operation."""

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.remembered.bodies import (
    ListRememberedStations,
    RememberedList,
    RemoveRememberedStation,
)
from sallyport.areas.factors.remembered.service import RememberedStations
from sallyport.base.answer import answers
from sallyport.base.model import Done
from sallyport.base.text import counted
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(service: RememberedStations, gate: Gate) -> Operations:
    """Return the operations of remembered stations."""
    stations = Operations("Factors", gate)

    @stations.post("/ad/ListRememberedStations", roles=READERS)
    async def list_remembered_stations(body: ListRememberedStations, caller: Caller) -> Plain[RememberedList]:
        """List the stations at which users of a domain are not asked for the second factor for a time, ordered by
        user. A station whose user has changed the password is listed until its time ends, and does not count any more.
        """
        page = body.page()
        found, total = await service.page(body.domainId, body.userName, page.offset, page.size)
        return Plain({"rememberedStations": answers(found), "totalCount": total})

    @stations.post("/ad/RemoveRememberedStation", roles=OPERATORS)
    async def remove_remembered_station(body: RemoveRememberedStation, caller: Caller) -> Done:
        """Forget a remembered station of a user, or all of them, such as after the loss of a laptop. The next login
        there asks for the second factor."""
        removed = await service.remove(Person(body.domainId, body.userName), body.rememberedId)
        return Done(message=f"{counted(removed, 'remembered station')} of {body.userName} forgotten")

    return stations
