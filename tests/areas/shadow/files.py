"""Log files of other servers, in their real formats, with values of a fictitious company."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from html import escape
from pathlib import Path

START = datetime(2026, 1, 1, 8)
STATION = "02-00-00-00-00-01"


@dataclass(frozen=True)
class Packet:
    """A login as NPS records it. reason: its Reason-Code; 0 for a granted login."""

    user: str
    at: datetime = START
    station: str = STATION
    nas: str = "192.0.2.1"
    reason: int = 0
    policy: str = "Staff VPN"
    called: str = "02-AA-00-00-00-01:corp"
    port_type: int = 19
    method: int = 4
    number: int = 1

    @property
    def session(self) -> str:
        """The Class of the login."""
        return f"311 1 192.0.2.250 01/01/2026 00:00:00 {self.number}"


def several(packets: Sequence[Packet]) -> list[Packet]:
    """Give each login a Class and a time of its own."""
    return [replace(each, number=number, at=each.at + timedelta(seconds=number)) for number, each in enumerate(packets)]


def dts(packet: Packet) -> str:
    """Return the two events of a login in the DTS-compliant format."""
    at = packet.at.strftime("%m/%d/%Y %H:%M:%S.000")
    head = (
        f'<Event><Timestamp data_type="4">{at}</Timestamp><Computer-Name data_type="1">NPS01</Computer-Name>'
        '<Event-Source data_type="1">IAS</Event-Source>'
    )
    own = (
        f'<Client-IP-Address data_type="3">{packet.nas}</Client-IP-Address>'
        f'<Class data_type="1">{packet.session}</Class>'
        f'<Authentication-Type data_type="0">{packet.method}</Authentication-Type>'
    )
    user = escape(packet.user, quote=False)
    asked = (
        f'{head}<User-Name data_type="1">{user}</User-Name><NAS-IP-Address data_type="3">{packet.nas}</NAS-IP-Address>'
        f'<Service-Type data_type="0">2</Service-Type><NAS-Port-Type data_type="0">{packet.port_type}</NAS-Port-Type>'
        f'<Called-Station-Id data_type="1">{packet.called}</Called-Station-Id>'
        f'<Calling-Station-Id data_type="1">{packet.station}</Calling-Station-Id>{own}'
        '<Packet-Type data_type="0">1</Packet-Type><Reason-Code data_type="0">0</Reason-Code></Event>'
    )
    kind = 2 if packet.reason == 0 else 3
    answered = (
        f'{head}{own}<Fully-Qualifed-User-Name data_type="1">CORP\\{user}</Fully-Qualifed-User-Name>'
        f'<NP-Policy-Name data_type="1">{escape(packet.policy, quote=False)}</NP-Policy-Name>'
        f'<Packet-Type data_type="0">{kind}</Packet-Type>'
        f'<Reason-Code data_type="0">{packet.reason}</Reason-Code></Event>'
    )
    return f"{asked}\r\n{answered}\r\n"


def ias(packet: Packet) -> str:
    """Return the two records of a login in the IAS format."""
    head = f'{packet.nas},"{packet.user}",{packet.at:%m/%d/%Y},{packet.at:%H:%M:%S},IAS,NPS01'
    own = f"4108,{packet.nas},25,{packet.session},4127,{packet.method}"
    kind = 2 if packet.reason == 0 else 3
    return (
        f"{head},4,{packet.nas},6,2,30,{packet.called},31,{packet.station},61,{packet.port_type},{own},4136,1,4142,0\r\n"
        f'{head},{own},4149,"{packet.policy}",4136,{kind},4142,{packet.reason}\r\n'
    )


def database(packet: Packet) -> str:
    """Return the two records of a login in the database-compatible format."""
    head = f'"NPS01","IAS",{packet.at:%m/%d/%Y},{packet.at:%H:%M:%S}'
    kind = 2 if packet.reason == 0 else 3
    return (
        f'{head},1,"{packet.user}","CORP\\{packet.user}","{packet.called}","{packet.station}",,,,"{packet.nas}",,9,'
        f'"{packet.nas}","vpn",,,{packet.port_type},,,2,{packet.method},,0,"{packet.session}",,,,\r\n'
        f'{head},{kind},,"CORP\\{packet.user}",,,,,,,,9,"{packet.nas}","vpn",,,,,,2,{packet.method},"{packet.policy}",'
        f'{packet.reason},"{packet.session}",,,,\r\n'
    )


def write(path: Path, packets: Iterator[Packet] | Sequence[Packet], form=dts) -> Path:  # type: ignore[no-untyped-def]
    """Write a log file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        file.writelines(form(each) for each in packets)
    return path
