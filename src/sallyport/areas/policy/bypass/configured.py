"""The stations of MAC authentication bypass in files (`sallyport apply`)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from pydantic import SecretBytes

from sallyport.areas.configured import Change, Fields, Kind, Mention, Stored
from sallyport.areas.policy.bypass.bodies import ImportedStation
from sallyport.areas.policy.bypass.service import Bypass
from sallyport.areas.policy.bypass.station import StationChange
from sallyport.base.clock import iso
from sallyport.base.mac import mac_key, mac_text
from sallyport.base.tags import canonical_tags
from sallyport.store.model import Tx


class BypassKind(Kind[ImportedStation]):
    """Stations of MAC authentication bypass."""

    name = "bypass"
    body = ImportedStation
    level = 2
    key = "station"
    refers = "domain"
    mentioned = frozenset({"role"})
    listed_by = ("/ad/ListBypassStations", "stations")
    changed_by = MappingProxyType(
        {
            "/ad/AddBypassStation": "station",
            "/ad/ImportBypassStations": "stations",
            "/ad/DeleteBypassStation": "station",
        }
    )

    def __init__(self, service: Bypass) -> None:
        self._service = service

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        for domain_id, domain in domains.items():
            for each in self._service.read(tx, domain_id):
                yield Stored(each.station, _fields(domain, each))

    def identity(self, fields: Fields) -> str:
        text = str(fields.get("station", ""))
        return mac_key(text) or text

    def values(self, body: ImportedStation) -> dict[str, object]:
        entry = _entry(body)
        return {
            "name": entry.name,
            "vlan": entry.vlan,
            "until": iso(entry.until) if entry.until else "",
            "role": (entry.role or "").casefold(),
            "psk": SecretBytes(entry.psk or b""),
            "tags": entry.tags,
        }

    def check(self, body: ImportedStation, before: Stored | None) -> None:
        if body.vlan:
            self._service.check_vlan(body.vlan)

    def mentions(self, body: ImportedStation) -> Iterable[Mention]:
        role = _entry(body).role
        return [Mention("role", "role", role)] if role else ()

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[ImportedStation]]) -> None:
        for domain_id, several in groupby(sorted(changes, key=_domain), key=_domain):
            own = list(several)
            removed = [str(each.before.id) for each in own if each.before and each.body is None]
            nameless = [each.body.station for each in own if each.body and "name" in each.fields and not each.body.name]
            rows = [_row(each.body, each) for each in own if each.body]
            self._service.write(tx, domain_id, rows, nameless, removed)


def _domain(change: Change[ImportedStation]) -> int:
    return change.domain_id


def _entry(body: ImportedStation) -> StationChange:
    """Return the whole entry that a body describes."""
    given = body.change_of(body.station)
    return StationChange(
        body.station,
        given.name.strip(),
        given.vlan or "",
        given.until or 0,
        given.role or "",
        given.psk or b"",
        canonical_tags(given.tags or ()),
    )


def _row(body: ImportedStation, change: Change[ImportedStation]) -> StationChange:
    """Return the change of an entry: without the key if it stays, because a sealed key looks new each time."""
    entry = _entry(body)
    keeps = change.before is not None and "psk" not in change.fields
    psk = None if keeps else entry.psk
    return StationChange(entry.station, entry.name, entry.vlan, entry.until, entry.role, psk, entry.tags)


def _fields(domain: str, entry: StationChange) -> dict[str, object]:
    fields: dict[str, object] = {
        "domain": domain,
        "station": mac_text(entry.station),
        "name": entry.name,
        "vlan": entry.vlan or "",
        "role": entry.role or "",
        "tags": list(entry.tags or ()),
    }
    if entry.until:
        fields["until"] = iso(entry.until)
    if entry.psk:
        fields["psk"] = {"hex": entry.psk.hex()}
    return fields
