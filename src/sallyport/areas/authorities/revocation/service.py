"""Whether the certificates of a verified chain are revoked.

Revocation lists are in memory, so they are looked up first. If the authority has an OCSP responder, the responder is
asked next, or its last answer is used. If the responder does not know the certificate or does not answer, a valid list
decides. Otherwise the state is unknown, and the authority's mode decides: soft or hard. A certificate on any list, even
an expired one, is revoked.

Addresses come from the settings of the authority, or from the certificates of the verified chain. The caller passes no
other chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import structlog
import trio
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from sallyport.areas.authorities.revocation.addresses import is_http
from sallyport.areas.authorities.revocation.lists import (
    RevocationList,
    delta_points,
    distribution_points,
    is_revoked,
    key_hash,
    responder_of,
)
from sallyport.areas.authorities.revocation.ocsp import OcspQuestion
from sallyport.areas.authorities.revocation.responders import LIMIT_S, AnswerKey, Responders
from sallyport.areas.authorities.revocation.sources import RevocationLists
from sallyport.areas.authorities.revocation.state import (
    NEVER,
    SOON_US,
    RevocationRules,
    RevocationState,
    RevocationStatus,
    combined,
)
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import Clock, from_us
from sallyport.base.errors import StoreError

MAX_KNOWN: Final = 20_000
_MAX_ISSUERS: Final = 4096
_NOWHERE: Final = "the certificate names no revocation list and no responder that can be asked"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _CachedState:
    """A state in the cache, and from what it follows. rules, version: the authority's rules and lists at that time."""

    rules: RevocationRules
    version: int
    state: RevocationState


@dataclass(frozen=True, slots=True)
class _Checked:
    """A certificate of a chain and its issuer. key: names the certificate. is_anchor: whether it is a trust anchor, or
    above one."""

    certificate: x509.Certificate
    issuer: x509.Certificate
    key: AnswerKey
    is_anchor: bool


class RevocationChecks:
    """The check of certificates by lists and responders."""

    def __init__(self, lists: RevocationLists, responders: Responders, clock: Clock) -> None:
        self._lists = lists
        self._responders = responders
        self._clock = clock
        self._states = BoundedMap[AnswerKey, _CachedState](MAX_KNOWN)
        self._keys = BoundedMap[x509.Certificate, bytes](_MAX_ISSUERS)

    def forget(self) -> None:
        """Drop everything in memory, because the store was replaced."""
        self._states.clear()
        self._responders.forget()
        self._lists.forget()

    def known(self, chain: Sequence[x509.Certificate], rules: RevocationRules) -> RevocationState | None:
        """Return the state of a verified chain if it is known without asking, else None.

        chain: the certificates from the leaf to a trust anchor, or further to the root.
        """
        now, version, found = self._clock(), self._lists.version(rules.authority_id), list[RevocationState]()
        for each in self._pairs(chain, rules):
            known = self._states.get(each.key)
            if known is None or known.version != version or known.rules is not rules or now >= known.state.until:
                return None
            found.append(known.state)
        return combined(found)

    async def state(self, chain: Sequence[x509.Certificate], rules: RevocationRules) -> RevocationState:
        """Return the state of a verified chain, see `known`. Ask for all unknown states at once, for two seconds."""
        known = self.known(chain, rules)
        if known is not None:
            return known
        pairs = list(self._pairs(chain, rules))
        found = dict[int, RevocationState]()

        async def examine(number: int, checked: _Checked) -> None:
            version = self._lists.version(rules.authority_id)
            state = found[number] = await self._examine(checked, rules)
            self._states.put(checked.key, _CachedState(rules, version, state), rules.tenant_id)

        async with trio.open_nursery() as nursery:
            for number, each in enumerate(pairs):
                nursery.start_soon(examine, number, each)
        return combined(found[number] for number in range(len(pairs)))

    def responder(self, certificate: x509.Certificate, rules: RevocationRules) -> str:
        """Return the address of the responder for a certificate; empty if there is none that can be asked."""
        found = rules.responder or (responder_of(certificate) if rules.uses_certificates else "")
        return found if is_http(found) else ""

    def _pairs(self, chain: Sequence[x509.Certificate], rules: RevocationRules) -> Iterator[_Checked]:
        is_anchor, anchors = False, rules.anchors
        for certificate, issuer in pairwise(chain):
            key = self._keys.get(issuer)
            if key is None:
                key = key_hash(issuer)
                self._keys.put(issuer, key)
            yield _Checked(certificate, issuer, (rules.authority_id, key, certificate.serial_number), is_anchor)
            is_anchor = is_anchor or key in anchors

    async def _examine(self, checked: _Checked, rules: RevocationRules) -> RevocationState:
        """Return the state of one certificate. A trust anchor is trusted unless a list has it."""
        certificate = checked.certificate
        addresses = self._list_addresses(certificate, rules)
        by_list = self._by_lists(checked, rules)
        responder = self.responder(certificate, rules)
        if by_list is not None and by_list.status is RevocationStatus.REVOKED:
            return by_list
        if (revoked := self._responders.revoked(checked.key)) is not None:
            return revoked
        missing = await self._want(addresses, rules, checked.issuer)
        if checked.is_anchor:
            return by_list or RevocationState(RevocationStatus.GOOD, "", NEVER)
        if by_list is None and addresses and not responder:
            await self._wait(addresses, rules)
            by_list = self._by_lists(checked, rules)
        if not responder:
            return by_list or self._unknown(addresses, missing, rules)
        state = await self._ask(checked, rules, responder)
        if state.status is not RevocationStatus.UNKNOWN or by_list is None:
            return state
        return RevocationState(by_list.status, f"{state.text}; {by_list.text}", min(state.until, by_list.until))

    def _list_addresses(self, certificate: x509.Certificate, rules: RevocationRules) -> list[str]:
        """Return the addresses of the lists for a certificate. Those with LDAP and the like are skipped."""
        if rules.lists:
            return list(rules.lists)
        if not rules.uses_certificates:
            return []
        points = (*distribution_points(certificate), *delta_points(certificate))
        return [each for each in points if is_http(each)]

    async def _want(self, addresses: Sequence[str], rules: RevocationRules, issuer: x509.Certificate) -> str:
        """Make the leader fetch the lists. Return why it does not, or an empty text."""
        reason, der = "", issuer.public_bytes(Encoding.DER)
        for address in addresses:
            try:
                reason = await self._lists.want(rules, address, der) or reason
            except StoreError as error:
                reason = str(error)
                log.warning("revocation_list_not_wanted", address=address, error=reason)
        return reason

    async def _wait(self, addresses: Sequence[str], rules: RevocationRules) -> None:
        with trio.move_on_after(LIMIT_S):
            for address in addresses:
                await self._lists.wait(rules.authority_id, address)

    def _by_lists(self, checked: _Checked, rules: RevocationRules) -> RevocationState | None:
        """Return the state of a certificate by the lists in memory. Return None if no valid list is about it."""
        _, issuer_key, serial = checked.key
        now = self._clock()
        own = [(address, each.list) for address, each in self._lists.of(rules.authority_id).items() if each.list]
        about = [(address, each) for address, each in own if each.covers(checked.certificate, issuer_key)]
        deltas = [each for _, each in about if each.base is not None]
        good: RevocationState | None = None
        for address, complete in about:
            if complete.base is not None:
                continue
            delta = _newest(complete, deltas)
            text = f"list {address} of {_times(complete, delta)}"
            if is_revoked(serial, complete, delta, now):
                return RevocationState(RevocationStatus.REVOKED, f"{text}: revoked", NEVER)
            until = complete.next_update
            if delta is not None and delta.is_valid(now):
                until = min(until, delta.next_update)
            if complete.is_valid(now) and (good is None or good.until < until):
                good = RevocationState(RevocationStatus.GOOD, f"{text}: good", until)
        return good

    async def _ask(self, checked: _Checked, rules: RevocationRules, responder: str) -> RevocationState:
        state = self._responders.known(checked.key, rules)
        if state is not None:
            return state
        is_revoked = self.revocations(rules, checked.key[1])
        name = checked.certificate.issuer.public_bytes()
        question = OcspQuestion(checked.certificate.serial_number, checked.issuer, name, is_revoked=is_revoked)
        return await self._responders.ask(rules, responder, checked.key, question)

    def revocations(self, rules: RevocationRules, issuer_key: bytes) -> _OfIssuer:
        """Return a function that tells whether a list of an issuer has a serial number."""
        own = self._lists.of(rules.authority_id).values()
        lists = [each.list for each in own if each.list is not None and each.list.issuer_key == issuer_key]
        deltas = [each for each in lists if each.base is not None]
        return _OfIssuer([(each, _newest(each, deltas)) for each in lists if each.base is None], self._clock())

    def _unknown(self, addresses: Sequence[str], missing: str, rules: RevocationRules) -> RevocationState:
        """Return the unknown state of a certificate that no valid list is about, with the reasons."""
        own = self._lists.of(rules.authority_id)
        reasons = [f"list {each}: {self._why(rules, each)}" for each in addresses if each in own]
        text = "; ".join(reasons) or missing or _NOWHERE
        return RevocationState(RevocationStatus.UNKNOWN, text, self._clock() + SOON_US)

    def _why(self, rules: RevocationRules, address: str) -> str:
        source = self._lists.of(rules.authority_id)[address]
        if source.row.error:
            return source.row.error
        if source.is_loading:
            return "it is being read from the store"
        if source.list is None:
            return "not fetched yet"
        if not source.list.is_valid(self._clock()):
            return f"expired at {from_us(source.list.next_update):%Y-%m-%d %H:%M} UTC"
        return "it is not about this certificate"


@dataclass(frozen=True, slots=True)
class _OfIssuer:
    """The lists of an issuer, as a function that tells whether a serial number is on one of them. lists: the complete
    lists, each with its delta list or None. now: microseconds."""

    lists: Sequence[tuple[RevocationList, RevocationList | None]]
    now: int

    def __call__(self, serial: int) -> bool:
        return any(is_revoked(serial, complete, delta, self.now) for complete, delta in self.lists)


def _newest(complete: RevocationList, deltas: Sequence[RevocationList]) -> RevocationList | None:
    """Return the newest delta list that applies to a complete list, or None."""
    fitting = [each for each in deltas if complete.takes_delta(each)]
    return max(fitting, key=lambda each: each.number or 0, default=None)


def _times(complete: RevocationList, delta: RevocationList | None) -> str:
    text = f"{from_us(complete.this_update):%Y-%m-%d %H:%M}"
    return text if delta is None else f"{text}, delta of {from_us(delta.this_update):%Y-%m-%d %H:%M}"
