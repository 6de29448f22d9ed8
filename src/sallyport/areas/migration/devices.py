"""RADIUS clients of a file, with what cannot be imported."""

import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from sallyport.areas.configuration.item import Item
from sallyport.areas.migration.translation import Finding, UniqueNames, Weight
from sallyport.base.addresses import Network, parse_network
from sallyport.base.errors import Invalid
from sallyport.base.tags import canonical_tag

MAX_SECRET: Final = 128
MAX_NOTE: Final = 1000


def _is_allowed(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cs")


def _network(address: str) -> Network | None:
    """Return a network, or None if the address is none that a client may have: a client has no zone."""
    with suppress(ValueError):
        return None if "%" in address else parse_network(address)
    return None


class Devices:
    """The RADIUS clients of a file. domains: the names of their domains."""

    def __init__(self, domains: Sequence[str]) -> None:
        self._domains = domains
        self._names = UniqueNames()
        self._networks: dict[str, str] = {}
        self.items: list[Item] = []
        self.findings: list[Finding] = []

    def find(self, weight: Weight, name: str, source: str, text: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(weight, name, source, text))

    def add(self, name: str, address: str, secret: str, source: str, **fields: object) -> Item | None:
        """Add a client. Add a finding instead if it cannot be imported. fields: further fields of AddClient."""
        name, address = name.strip(), address.strip()
        note = str(fields.get("note", ""))
        if odd := [what for what, text in (("name", name), ("note", note)) if not all(map(_is_allowed, text))]:
            self.find(Weight.LEFT_OUT, address, source, f"its {odd[0]} has control characters")
            return None
        if len(note) > MAX_NOTE:
            self.find(Weight.NOTE, name, source, f"the note is cut after {MAX_NOTE} characters")
            fields["note"] = note[:MAX_NOTE]
        network = _network(address)
        if network is None:
            hint = "names are not resolved: add the client with its address (sallyport client add)"
            self.find(Weight.LEFT_OUT, name, source, f"{address[:100]!r} is no address and no network; {hint}")
            return None
        octets = secret.encode()
        if not 1 <= len(octets) <= MAX_SECRET:
            wrong = f"its secret has more than {MAX_SECRET} octets" if octets else "it has no secret in the file"
            self.find(Weight.LEFT_OUT, name or address, source, wrong)
            return None
        if set(secret) == {"*"}:
            self.find(Weight.LEFT_OUT, name or address, source, "its secret is hidden by asterisks in the file")
            return None
        if not secret.isascii():
            text = "the secret has characters outside ASCII: test a login of this client"
            self.find(Weight.NOTE, name, source, text)
        if str(network) in self._networks:
            text = f"the client {self._networks[str(network)]} has the same address"
            self.find(Weight.LEFT_OUT, name, source, text)
            return None
        chosen = self._names.take(name or address)
        if chosen != name:
            self.find(Weight.NOTE, name or address, source, f"is imported under the name {chosen}")
        self._networks[str(network)] = chosen
        text = str(network)
        is_one = network.prefixlen == network.max_prefixlen
        given = {
            "name": chosen,
            "address": text.partition("/")[0] if is_one else text,
            "secret": {"hex": octets.hex()},
            "domains": [*self._domains],
            **{key: value for key, value in fields.items() if value not in ("", [], None)},
        }
        item = Item("client", chosen, given, source)
        self.items.append(item)
        return item

    def tag(self, key: str, value: str, name: str, source: str) -> list[str]:
        """Return a tag as a list. It is empty, with a finding, if the tag is not valid."""
        folded = "".join(each if each.isascii() and (each.isalnum() or each in "_.-") else "-" for each in key.lower())
        try:
            return [canonical_tag(f"{folded}={value.strip()}")] if value.strip() else []
        except Invalid:
            self.find(Weight.LEFT_OUT, name, source, f"{key[:50]} {value[:100]!r} is no valid tag")
            return []
