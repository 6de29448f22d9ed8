"""The packets in packets/: each file is a request of one product, in the format of radclient.

The lines that begin with `#:` have the expected findings. The letters give the source of the evidence, as in the
package: P is a real packet or debug log, S is source code, D is documentation. Names and addresses are replaced, and
what a log leaves out is filled in.
"""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from sallyport.radius.attributes import push_attribute, push_vendor_attribute
from sallyport.radius.dictionary import Dictionary, load
from sallyport.radius.packet import ACCESS_REQUEST, ACCOUNTING_REQUEST, Request, SharedSecret, decode, encode_request
from sallyport.radius.vendors import Finding, Identity, identify

PACKETS: Final = Path(__file__).parent / "packets"
SECRET: Final = SharedSecret(b"s3cret")


@cache
def dictionary() -> Dictionary:
    """Return the dictionaries of the package."""
    return load()


@dataclass(frozen=True)
class Capture:
    """A file of packets/.

    name: the file name without the suffix. expected: the `#:` lines with the expected findings. lines: the lines with
    the attributes.
    """

    name: str
    expected: dict[str, str]
    lines: list[str]
    source: str = field(default="192.0.2.10", kw_only=True)

    def plus(self, *lines: str, source: str = "") -> "Capture":
        """Return the same capture with further attributes at its end, as a proxy adds them, and with another source."""
        return Capture(self.name, self.expected, [*self.lines, *lines], source=source or self.source)

    def less(self, *names: str) -> "Capture":
        """Return the same capture without the attributes that have these names."""
        kept = [line for line in self.lines if line.partition(" = ")[0] not in names]
        return Capture(self.name, self.expected, kept, source=self.source)

    def request(self) -> Request:
        """Return the request as the listener receives it: encoded, sent and decoded."""
        code = ACCOUNTING_REQUEST if any(line.startswith("Acct-Status-Type") for line in self.lines) else ACCESS_REQUEST
        return decode(encode_request(code, 7, SECRET, octets_of(self.lines)), SECRET)

    def identity(self) -> Identity:
        """Return the identity that the service finds."""
        return identify(self.request(), source=self.source)


def octets_of(lines: list[str]) -> bytes:
    """Return attributes in octets. They are given by lines such as `NAS-Port = 7` or `Class = 0x00ff`."""
    return b"".join(_octets_of(line) for line in lines)


def _octets_of(line: str) -> bytes:
    name, _, text = line.partition(" = ")
    attribute = dictionary().attribute(name)
    text = text.removeprefix('"').removesuffix('"')
    value = b"" if text == "0x" else dictionary().encode(name, text)
    if attribute.vendor:
        return push_vendor_attribute(attribute.vendor, attribute.number, value)
    return push_attribute(attribute.number, value)


@cache
def capture(name: str) -> Capture:
    """Return the capture in the file of that name."""
    expected: dict[str, str] = {}
    lines: list[str] = []
    for line in (PACKETS / f"{name}.txt").read_text().splitlines():
        if line.startswith("#:"):
            key, _, value = line.removeprefix("#:").partition(":")
            expected[key.strip()] = value.strip()
        elif line and not line.startswith("#"):
            lines.append(line)
    return Capture(name, expected, lines, source=expected["source"])


def packet(*lines: str, source: str = "192.0.2.10") -> Capture:
    """Return a request with these attributes."""
    return Capture("packet", {}, list(lines), source=source)


def described(finding: Finding | None) -> str:
    """Return a finding in the notation of the files: `Cisco IOS, certain: evidence; evidence`, or a text for no
    finding."""
    if finding is None:
        return "none"
    return f"{finding.product}, {finding.certainty}: {'; '.join(finding.evidence)}"


NAMES: Final = tuple(sorted(path.stem for path in PACKETS.glob("*.txt")))
