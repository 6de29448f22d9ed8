"""Request and response bodies of /ad/...BypassStation(s)."""

from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, SecretBytes, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from sallyport.areas.policy.bypass.psk import is_psk
from sallyport.areas.policy.bypass.station import StationChange, StationRow
from sallyport.areas.policy.bypass.unknown import UnknownRow
from sallyport.base.mac import mac_key
from sallyport.base.model import Done, Model, SentModel, answer_of
from sallyport.base.validation import Moment, unfit
from sallyport.base.wire import LATEST
from sallyport.web.bodies import Flag, InDomain, Many, Octets, Paged, PlainText, Text, TotalCount
from sallyport.web.tags import NewTags

MAX_STATIONS: Final = 1000
"""Maximum number of stations in one request."""


def _mac(value: str) -> str:
    key = mac_key(value)
    if not key:
        raise unfit("must be a MAC address")
    return key


def _trimmed(value: str) -> str:
    return value.strip()


def _end(value: object, handler: ValidatorFunctionWrapHandler) -> int:
    end = 0 if value == "" else int(handler(value))
    if value != "" and not 0 < end <= LATEST:  # a spreadsheet writes an empty date as 1900-01-00; 0 means no end
        raise unfit("must be in the years 1970 to 9999 (UTC)")
    return end


End = Annotated[Moment, WrapValidator(_end)]
"""The end of an entry: a time in the years 1970 to 9999, or an empty text, which is 0."""


def _psk(value: SecretBytes) -> SecretBytes:
    key = value.get_secret_value()
    if key and not is_psk(key):
        raise unfit("must be a passphrase of 8 to 63 printable ASCII characters, or a key of 64 hexadecimal digits")
    return value


Psk = Annotated[Octets, AfterValidator(_psk)]
Mac = Annotated[Text, AfterValidator(_mac)]
Vlan = Annotated[PlainText, Field(max_length=64), AfterValidator(_trimmed)]
VLAN: Final = (
    "VLAN of the stations: a number from 1 to 4094, or a name. It replaces the VLAN of the login rule. An empty text "
    "removes it."
)
ROLE: Final = (
    "Role of the stations: its reply attributes replace those of the login rule. An empty text removes the role."
)
PSK: Final = (
    "Pre-shared key of the stations for Wi-Fi: a passphrase of 8 to 63 characters, or 64 hexadecimal digits. No answer "
    "has it. An empty text removes it."
)
UNTIL: Final = "End of the entry, ISO 8601: from then on, the station is unknown. An empty text removes the end."
Stations = Annotated[Many[Mac], Field(min_length=1, max_length=MAX_STATIONS)]


class _EntryFields(SentModel):
    name: Text = Field(
        default="",
        description="Name of the stations. If it is empty, stations that are already listed keep their names.",
    )
    vlan: Vlan | None = Field(default=None, description=VLAN)
    until: End | None = Field(default=None, description=UNTIL)
    role: Annotated[PlainText, Field(max_length=64), AfterValidator(_trimmed)] | None = Field(
        default=None, description=ROLE
    )
    psk: Psk | None = Field(default=None, description=PSK)
    tags: NewTags | None = None

    def change_of(self, station: str, new: bytes | None = None) -> StationChange:
        """Return the change of a station. new: a pre-shared key that was made for it, or None."""
        psk = new if self.psk is None else self.psk.get_secret_value()
        tags = None if self.tags is None else tuple(self.tags)
        return StationChange(station, self.name, self.vlan, self.until, self.role, psk, tags)


class AddBypassStation(InDomain, _EntryFields):
    """Request body of the operation `AddBypassStation`. A station that is already listed keeps each value that the
    request does not have."""

    station: Stations = Field(description="One MAC address or several, in any notation.")
    generatePsk: Flag = Field(
        default=False,
        description="Whether each station gets a new pre-shared key, a passphrase of 20 characters. Only the answer to "
        "this request has the keys.",
    )

    @model_validator(mode="after")
    def _has_one_key(self) -> Self:
        if self.generatePsk and self.psk is not None:
            raise unfit("give psk or generatePsk, not both", "psk", "generatePsk")
        return self


class NewKey(Model):
    """A station with its new pre-shared key."""

    station: str = Field(description="MAC address as aa:bb:cc:dd:ee:ff.")
    psk: str = Field(description="Pre-shared key. No other answer has it.")


class StationsAdded(Done):
    """Response body of the operation `AddBypassStation`."""

    keys: list[NewKey] = Field(description="The new pre-shared keys, if generatePsk is true; otherwise empty.")


class ImportedStation(_EntryFields):
    """A station in a request of the operation `ImportBypassStations`."""

    station: Mac = Field(description="MAC address in any notation.")


class ImportBypassStations(InDomain):
    """Request body of the operation `ImportBypassStations`."""

    stations: Annotated[list[ImportedStation], Field(min_length=1, max_length=MAX_STATIONS)] = Field(
        description="Stations with the values of their entries. A value that is absent is kept."
    )


class DeleteBypassStation(InDomain):
    """Request body of the operation `DeleteBypassStation`."""

    station: Stations = Field(
        description="One MAC address or several, in any notation. If one of them is not listed, none is removed."
    )


class ListBypassStations(InDomain, Paged):
    """Request body of the operation `ListBypassStations`."""

    search: Text = Field(
        default="",
        description="Part of the address in any notation, or of the name. If it is empty, all stations are listed.",
    )


@answer_of(StationRow)
class StationEntry(Model):
    """A station on the list."""


class StationList(Model):
    """Response body of the operation `ListBypassStations`."""

    stations: list[StationEntry] = Field(description="Stations of the page, in the order in which they were added.")
    totalCount: TotalCount


class ListUnknownStations(InDomain, Paged):
    """Request body of the operation `ListUnknownStations`."""

    search: Text = Field(
        default="",
        description="Part of the address in any notation, of the SSID or of the port. If it is empty, all are listed.",
    )


@answer_of(UnknownRow)
class UnknownStation(Model):
    """A station that is not on the list."""


class UnknownList(Model):
    """Response body of the operation `ListUnknownStations`."""

    stations: list[UnknownStation] = Field(description="Stations of the page, the last seen first.")
    totalCount: TotalCount
