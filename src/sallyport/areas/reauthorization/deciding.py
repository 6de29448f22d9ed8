"""Decide the login of a live session again, by the current rules."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from secrets import token_bytes
from typing import Final

from sallyport.areas.clients.client import Client
from sallyport.areas.devices import repo as inventory
from sallyport.areas.devices.rows import DeviceRow
from sallyport.areas.devices.sightings import find_product, new_device
from sallyport.areas.directory.principals import CloudState, Membership
from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.areas.login.decision import decide_in
from sallyport.areas.login.facts import DEVICE_FACT
from sallyport.areas.login.identity import identify, kept, network_of
from sallyport.areas.login.login import PASSED, Decision, Found, Login, Reason, Verdict
from sallyport.areas.login.pipeline import Pipeline
from sallyport.areas.login.second.forecast import UNAVAILABLE
from sallyport.areas.login.simulated import client_of, refusal_of_user, simulated
from sallyport.areas.mfa.circuit import Unavailable
from sallyport.areas.policy.rules.rule import MFA_REQUIRED, Action
from sallyport.areas.reauthorization import repo
from sallyport.areas.reauthorization.reauthorization import SessionChange, SessionEffect
from sallyport.areas.reauthorization.repo import Live, PastLogin
from sallyport.base.tags import of_store
from sallyport.base.text import fold
from sallyport.radius.attributes import (
    CALLED_STATION_ID,
    CALLING_STATION_ID,
    NAS_IDENTIFIER,
    NAS_IP_ADDRESS,
    NAS_IPV6_ADDRESS,
    NAS_PORT,
    NAS_PORT_ID,
    NAS_PORT_TYPE,
    SERVICE_TYPE,
    USER_NAME,
    pull_attributes,
    push_attribute,
)
from sallyport.radius.dynamic import ROOM
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.radius.password import Method
from sallyport.store.model import Tx

MAX_VALUE: Final = 253
ROOM_FOR_SESSION: Final = 1024
"""Octets that the attributes that identify a session may take in a request."""
NOT_RECORDED: Final = "the login is not recorded"
MISSING_FACT: Final = "a fact of the login is not known, so it is not certain which rule decides"
NO_MAC: Final = "00-00-00-00-00-00"
OTHER_ATTRIBUTES: Final = "other attributes"
FEWER_ATTRIBUTES: Final = "attributes are no longer set"
NOTHING: Final = frozenset[str]()
CERTIFICATE: Final = frozenset({"certificates"})
OF_FIRST_FACTOR: Final = frozenset({"User-Name", "Session-Timeout", "Reply-Message"})
"""Attributes in an answer that do not come from rules."""


@dataclass(frozen=True, slots=True)
class StoredLogin:
    """What the store has about the login of a session. past: its event, or None. member: the directory data of the
    user. refusal: why a new login of the user would be refused before the rules are asked, or PASSED."""

    past: PastLogin | None
    member: Membership
    refusal: Reason


class Deciding:
    """The decisions about live sessions. shown: returns the text of encoded attributes. naming: the attributes that
    identify a session, which a request cannot change."""

    def __init__(
        self,
        pipeline: Pipeline,
        find_client: Callable[[str], Client | None],
        shown: Callable[[bytes], str],
        naming: frozenset[int],
    ) -> None:
        self._pipeline = pipeline
        self._find_client = find_client
        self._shown = shown
        self._naming = naming

    def slice(
        self, tx: Tx, domain: Domain, sessions: Sequence[Live], at: int, *, by_disconnect: bool
    ) -> list[SessionChange]:
        """Return those of the sessions that change, or that cannot be decided. Sessions of users of other domains are
        left out. Only the store is read. at: the time now, in microseconds."""
        rows: dict[tuple[int, int], DeviceRow] = {}
        for domain_id in {each.domain_id for each in sessions}:
            device_ids = sorted({each.device_id for each in sessions if each.domain_id == domain_id})
            rows |= {(domain_id, row.id): row for row in inventory.several(tx, domain_id, device_ids)}
        found = list[SessionChange]()
        for each in sessions:
            row = rows.get((each.domain_id, each.device_id))
            login = None if row is None or not each.user_name else self._login(each, row, at)
            if row is None or login is None or login.domain is None or login.domain.id != domain.id or not login.user:
                continue
            past = repo.login_of(tx, domain.id, fold(login.user), each)
            if past is not None:
                login = self._login(each, row, at, past)
            member = kept(tx, domain, login.user)
            known = StoredLogin(past, member, refusal_of_user(tx, domain, login.user, member.cloud))
            change = self._change(login, domain, known, by_disconnect=by_disconnect)
            if change is not None:
                effect, reason, before, attributes = change
                shown = self._shown(attributes) if attributes else ""
                found.append(
                    SessionChange(
                        each.id,
                        each.user_name or "",
                        row.device_name,
                        each.station or "",
                        effect,
                        reason,
                        before,
                        shown,
                        attributes if effect is SessionEffect.CHANGE else b"",
                    )
                )
        return found

    def _login(self, session: Live, row: DeviceRow, at: int, past: PastLogin | None = None) -> Login:
        """Return a login with the facts of a session, as its device would send it now. past: the event of the login."""
        home = self._pipeline.domains.value.present(session.domain_id)
        client = self._client(row.ip_address, home)
        octets = _attributes(session, row, past)
        login = simulated(client, row.ip_address, octets, token_bytes(16), Method.NONE, at)
        identify(login, self._pipeline.domains.value)
        login.station, login.network = session.station or "", network_of(login.arrival.request)
        login.device = device = new_device(login.arrival.request, row.ip_address, home.id, at)
        find_product(device, login.arrival.request, client, at)
        device.device_type, device.nas_device_type = client.product or row.device_type, row.nas_device_type
        device.id, device.device_name = row.id, row.device_name
        tags = of_store(row.own_tags)
        device.find_own_tags, device.has_claimed_tags = lambda _device: tags, self._pipeline.sightings.has_claimed_tags
        if past is not None:
            login.method, login.factor, login.realm = past.method, past.factor, past.realm or login.realm
            login.named_by = NamedBy.DNS if past.machine else None
            login.arrival.request.signed = past.claimed == 0
        return login

    def _client(self, address: str, home: Domain) -> Client:
        client = self._find_client(address)
        return client if client is not None and client.tenant_id == home.tenant_id else client_of(home)

    def _change(
        self, login: Login, domain: Domain, known: StoredLogin, *, by_disconnect: bool
    ) -> tuple[SessionEffect, str, str, bytes] | None:
        """Return the effect on a session, the reason, the attributes that the login got as text, and the encoded
        attributes that it would get. Return None if nothing changes."""
        past, steps = known.past, self._pipeline
        if past is None:
            return SessionEffect.UNDECIDED, NOT_RECORDED, "", b""
        before, recorded = past.attributes or "", _recorded(past, known.member.cloud)
        login.imported, login.found = known.member, Found()
        if past.method == Method.MAB:
            decision = steps.apply_rules_to_station(login, domain, recorded)
        elif known.refusal is not PASSED:
            return SessionEffect.DISCONNECT, known.refusal.value, before, b""
        else:
            decision = self._decision(login, domain, steps.apply_rules(login, domain, recorded))
        if not self._is_certain(login, domain, recorded):
            return SessionEffect.UNDECIDED, MISSING_FACT, before, b""
        if decision.applied is not Verdict.ACCEPT:
            return SessionEffect.DISCONNECT, decision.reason.value, before, b""
        return self._other_attributes(domain, before, login.attributes, by_disconnect=by_disconnect)

    def _is_certain(self, login: Login, domain: Domain, known: Mapping[str, object]) -> bool:
        """Return whether all facts are known on which the decision depends. A login by a method without a certificate
        surely has none, so a new login would be decided in the same way."""
        own = self._pipeline.rules.of(domain.id)
        if own is None:
            return True
        may_have_one = login.method == Method.EAP or login.method.startswith(Method.EAP_TLS)
        absent = NOTHING if may_have_one else CERTIFICATE
        steps = own.explain(self._pipeline.facts_with(login, own, known))
        return all(step.matches is not None or absent.issuperset(step.missing) for step in steps)

    def _decision(self, login: Login, domain: Domain, action: Action) -> Decision:
        """Return the decision about a login whose password was right. A login that had a second factor keeps it."""
        second = PASSED
        if action is MFA_REQUIRED and "+" not in login.factor:
            self._pipeline.refresh(login, domain)
            provider = login.provider
            second = UNAVAILABLE[provider] if isinstance(provider, Unavailable) else Reason.ASKED
        return decide_in(domain, PASSED, action, second)

    def _other_attributes(
        self, domain: Domain, before: str, attributes: bytes, *, by_disconnect: bool
    ) -> tuple[SessionEffect, str, str, bytes] | None:
        old, new = set(before.splitlines()), set(self._shown(attributes).splitlines() if attributes else ())
        names = {_name(line) for line in new} | OF_FIRST_FACTOR
        has_gone = domain.first_factor is not FirstFactor.RADIUS and any(_name(line) not in names for line in old)
        if new <= old and not has_gone:
            return None
        settable = all(kind not in self._naming for kind, _ in pull_attributes(attributes))
        fits = settable and len(attributes) <= ROOM - ROOM_FOR_SESSION
        if has_gone or by_disconnect or not fits:
            reason = FEWER_ATTRIBUTES if has_gone else OTHER_ATTRIBUTES
            return SessionEffect.DISCONNECT, reason, before, attributes
        return SessionEffect.CHANGE, OTHER_ATTRIBUTES, before, attributes


def _name(line: str) -> str:
    return line.partition(" = ")[0]


def _attributes(session: Live, row: DeviceRow, past: PastLogin | None) -> bytes:
    """Return the encoded attributes of a request of a session's device. The event of the login knows more than its
    accounting, such as an SSID from an attribute of a vendor."""
    nas = ip_address(row.client_ip) if row.client_ip else None
    called, port, service_type = session.called_station or "", session.nas_port_id or "", None
    if past is not None:
        called = f"{NO_MAC}:{past.ssid}" if past.ssid else called
        port, service_type = past.port or port, past.service_type
    pairs = (
        (USER_NAME, (session.user_name or "").encode()),
        (CALLING_STATION_ID, (session.station or "").encode()),
        (CALLED_STATION_ID, called.encode()),
        (NAS_IP_ADDRESS, nas.packed if nas is not None and nas.version == 4 else b""),
        (NAS_IPV6_ADDRESS, nas.packed if nas is not None and nas.version == 6 else b""),
        (NAS_IDENTIFIER, row.nas_identifier.encode()),
        (NAS_PORT, b"" if session.nas_port is None else session.nas_port.to_bytes(4)),
        (NAS_PORT_ID, port.encode()),
        (NAS_PORT_TYPE, b"" if session.nas_port_type is None else session.nas_port_type.to_bytes(4)),
        (SERVICE_TYPE, b"" if service_type is None else service_type.to_bytes(4)),
    )
    return b"".join(push_attribute(kind, value) for kind, value in pairs if 0 < len(value) <= MAX_VALUE)


def _recorded(past: PastLogin, state: CloudState | None) -> dict[str, object]:
    """Return the facts of a login that only its event has: the address of the endpoint, the method of the full login
    if a session was resumed, the certificate, and other attributes that rules compare. state: that of the user's
    account in a cloud directory, or None. The present facts of a device replace those of the login."""
    kept = json.loads(past.facts) if past.facts else {}
    found: dict[str, object] = {name: kept[name] for name in ("address", "method") if name in kept}
    if "certificates" in kept:
        own = [fact for fact in kept["certificates"] if not fact.startswith(DEVICE_FACT)]
        found["certificates"] = (*own, *(f"{DEVICE_FACT}{fact}" for fact in (state.device if state else ())))
    if "attributes" in kept:
        found["attributes"] = {name: tuple(values) for name, values in kept["attributes"].items()}
    return found
