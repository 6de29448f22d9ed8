"""Request and response bodies of /ad/...Profile(s)."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from sallyport.areas.profiles.files import ProfileFile
from sallyport.areas.profiles.profile import (
    ANCHORS_TEXT,
    HIDDEN_TEXT,
    HOST,
    LOGIN_TEXT,
    MAX_IDENTITY,
    MAX_NAME,
    MAX_SERVER_NAMES,
    MAX_SSID_OCTETS,
    MAX_SSIDS,
    METHOD_TEXT,
    NAMES_TEXT,
    OUTER_TEXT,
    SECURITY_TEXT,
    SSIDS_TEXT,
    WIRED_TEXT,
    LoginBy,
    Method,
    Profile,
    Security,
)
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import Between, unfit
from sallyport.web.bodies import Flag, InDomain, Many, Name, Paged, Text, TotalCount, Whole

PROFILE: Final = "Name of the profile. Case is ignored."
FILE: Final = "Name of the file, as ShowProfile lists it."
USER: Final = "User name to write into files for Apple and Linux. Empty: the device asks, or a placeholder."
MAX_DAYS: Final = 366
LINK_DAYS: Final = 30
_MAX_PEM: Final = 16_384
_MAX_HOST: Final = 253


def _printable(value: str) -> str:
    if not value.isprintable():
        raise unfit("must be printable text")
    return value


def _ssid(value: str) -> str:
    if not 1 <= len(_printable(value).encode()) <= MAX_SSID_OCTETS:
        raise unfit(f"must have 1 to {MAX_SSID_OCTETS} octets of UTF-8")
    return value


def _host(value: str) -> str:
    lowered = value.strip().lower()
    if len(lowered) > _MAX_HOST or not HOST.fullmatch(lowered):
        raise unfit("must be a DNS name, such as radius.example.com, without a wildcard")
    return lowered


def _identity(value: str) -> str:
    if len(_printable(value).encode()) > MAX_IDENTITY:
        raise unfit(f"must have at most {MAX_IDENTITY} octets of UTF-8")
    return value


def _distinct(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


ProfileName = Annotated[Name, Field(max_length=MAX_NAME), AfterValidator(str.strip), AfterValidator(_printable)]
Ssid = Annotated[str, AfterValidator(_ssid)]
ServerName = Annotated[str, AfterValidator(_host)]
Identity = Annotated[str, AfterValidator(_identity)]
Ssids = Annotated[Many[Ssid], Field(max_length=MAX_SSIDS), AfterValidator(_distinct)]
ServerNames = Annotated[Many[ServerName], Field(max_length=MAX_SERVER_NAMES), AfterValidator(_distinct)]


class OneProfile(InDomain):
    """The name of a profile."""

    name: ProfileName = Field(description=PROFILE)


class SetProfile(OneProfile):
    """Request body of the operation `SetProfile`. A field that is absent keeps its value."""

    ssids: Ssids | None = Field(default=None, description=SSIDS_TEXT)
    hidden: Flag | None = Field(default=None, description=HIDDEN_TEXT)
    security: Security | None = Field(default=None, description=SECURITY_TEXT)
    wired: Flag | None = Field(default=None, description=WIRED_TEXT)
    method: Method | None = Field(default=None, description=METHOD_TEXT)
    loginBy: LoginBy | None = Field(default=None, description=LOGIN_TEXT)
    outerIdentity: Identity | None = Field(default=None, description=OUTER_TEXT)
    serverNames: ServerNames | None = Field(default=None, description=NAMES_TEXT)
    anchors: Annotated[str, Field(max_length=_MAX_PEM)] | None = Field(default=None, description=ANCHORS_TEXT)


class ListProfiles(InDomain, Paged):
    """Request body of the operation `ListProfiles`."""

    search: Text = Field(default="", description="Text that the name must contain; case is ignored.")


class ShowProfile(OneProfile):
    """Request body of the operation `ShowProfile`."""


class RemoveProfile(OneProfile):
    """Request body of the operation `RemoveProfile`."""


class GetProfileFile(OneProfile):
    """Request body of the operation `GetProfileFile`."""

    file: Text = Field(description=FILE)
    userName: Identity = Field(default="", description=USER)


class MakeProfileLink(OneProfile):
    """Request body of the operation `MakeProfileLink`."""

    days: Annotated[Whole, Between(0, MAX_DAYS)] = Field(
        default=LINK_DAYS, description="Days until the link expires. 0 ends the present link."
    )


@answer_of(Profile)
class ProfileEntry(Model):
    """A profile."""


@answer_of(ProfileFile, "file", "kind", "title", "mediaType")
class FileEntry(Model):
    """A file of a profile."""


class TypedSetting(Model):
    """A setting that a person types on an Android device."""

    title: str = Field(description="Title of the setting.")
    value: str = Field(description="Value of the setting.")


class AnchorEntry(Model):
    """An authority that devices trust for the server."""

    name: str = Field(description="Common name of the authority.")
    sha1: str = Field(description="SHA-1 of its certificate in hex, which Windows shows as the thumbprint.")


class ProfileDetail(ProfileEntry):
    """Response body of the operation `ShowProfile`."""

    trustedNames: list[str] = Field(description="Server names in the files.")
    trustedAnchors: list[AnchorEntry] = Field(description="Authorities in the files.")
    problem: str = Field(description="Why no file can be made; empty if all files can be made.")
    files: list[FileEntry] = Field(description="Files of the profile.")
    androidSettings: list[TypedSetting] = Field(
        description="Settings to type on Android. Empty without a Wi-Fi network."
    )


class ProfileList(Model):
    """Response body of the operation `ListProfiles`."""

    profiles: list[ProfileEntry] = Field(description="Profiles of the page, ordered by name.")
    totalCount: TotalCount


class ProfileFileContent(Model):
    """Response body of the operation `GetProfileFile`."""

    file: str = Field(description="Name of the file.")
    mediaType: str = Field(description="Media type of the file.")
    content: str = Field(description="Content of the file in base64.")


class ProfileLink(Done):
    """Response body of the operation `MakeProfileLink`."""

    link: str = Field(description="URL of the page with the files. Only this answer contains it. Empty: no link.")
    linkExpiresAt: str = Field(description="When the link expires, ISO 8601 UTC; empty without a link.")
