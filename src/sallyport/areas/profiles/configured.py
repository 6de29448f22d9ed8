"""Network profiles in files (`sallyport apply`).

The link of a profile is no configuration, and neither are the UUIDs in its files: two installations made from one
folder have different ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Final

from sallyport.areas.configured import Change, Kind, Stored
from sallyport.areas.domains import repo as domains_repo
from sallyport.areas.profiles import repo
from sallyport.areas.profiles.bodies import SetProfile
from sallyport.areas.profiles.profile import SETTINGS, Profile
from sallyport.areas.profiles.service import Profiles, check_networks
from sallyport.areas.profiles.trust import checked_anchors
from sallyport.base.answer import answer
from sallyport.store.model import Tx

ANCHORS: Final = "anchors"
_BY_DOMAIN: Final = frozenset({"method", "outerIdentity"})
"""The fields whose default follows from the domain when a profile is added. A file without them keeps them."""
_DEFAULTS: Final = {each.name: each.default for each in fields(Profile)}


class ProfileKind(Kind[SetProfile]):
    """Network profiles."""

    name = "profile"
    body = SetProfile
    refers = "domain"
    keeps = _BY_DOMAIN
    texts = frozenset({ANCHORS})
    listed_by = ("/ad/ListProfiles", "profiles")
    shown_by = MappingProxyType({"/ad/ShowProfile": "name"})
    changed_by = MappingProxyType({"/ad/SetProfile": "name", "/ad/RemoveProfile": "name"})

    def __init__(self, service: Profiles) -> None:
        self._service = service

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        for domain_id, domain in domains.items():
            for each in repo.profiles(tx, domain_id):
                shown = answer(each, warnings=[])
                yield Stored(
                    each.name, {"domain": domain, "name": each.name, **{name: shown[name] for name in SETTINGS}}
                )

    def values(self, body: SetProfile) -> dict[str, object]:
        given = {name: getattr(body, name) for name in SETTINGS}
        found = {name: _default(name) if value is None else value for name, value in given.items()}
        anchors = checked_anchors(body.anchors, ANCHORS) if body.anchors and body.anchors.strip() else ""
        return {**found, ANCHORS: anchors}

    def check(self, body: SetProfile, before: Stored | None) -> None:
        check_networks(body.ssids or (), wired=bool(body.wired))

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[SetProfile]]) -> None:
        for each in changes:
            if each.body is None:
                self._service.remove_in(tx, each.domain_id, str(each.before.id) if each.before else "")
                continue
            domain = domains_repo.get(tx, each.domain_id)
            self._service.set_in(tx, domain, each.body.name, self._fields(each.body))

    def _fields(self, body: SetProfile) -> dict[str, object]:
        """Return the new values by the fields of `Profile`, without those that follow from the domain."""
        return {
            SETTINGS[name]: tuple(value) if isinstance(value, list) else value
            for name, value in self.values(body).items()
            if name not in _BY_DOMAIN or getattr(body, name) is not None
        }


def _default(name: str) -> object:
    return [] if isinstance(value := _DEFAULTS[SETTINGS[name]], tuple) else value
