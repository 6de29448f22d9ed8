"""All files of a profile, by name.

A name consists of the letters and digits of the profile's name, so that it is safe in a header and in a shell.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Annotated, Final

from sallyport.areas.profiles import android, apple, linux, windows
from sallyport.areas.profiles.profile import Profile, Trust
from sallyport.base.answer import Wire

_SLUG: Final = re.compile(r"[^a-z0-9]+")
_MAX_SLUG_LENGTH: Final = 40


class Kind(StrEnum):
    """The format of a file."""

    APPLE = "apple"
    WINDOWS = "windows"
    ANDROID = "android"
    NETWORK_MANAGER = "networkmanager"
    WPA_SUPPLICANT = "wpa_supplicant"
    AUTHORITY = "authority"


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """A file of a profile. make: a function that returns its content. It gets what devices must know of the server, and
    the user name or an empty text."""

    file: Annotated[str, Wire("Name of the file.", title="File", look="none")]
    kind: Annotated[
        Kind, Wire("Format: apple, windows, android, networkmanager, wpa_supplicant, or authority.", look="none")
    ]
    title: Annotated[str, Wire("Purpose of the file.", title="For")]
    media_type: Annotated[str, Wire("Media type of the file.", "mediaType", look="none")]
    make: Callable[[Trust, str], bytes]


def files_of(profile: Profile) -> list[ProfileFile]:
    """Return the files of a profile, ordered by system. They are made by `ProfileFile.make`."""
    return list(_files(profile))


def _files(profile: Profile) -> Iterator[ProfileFile]:
    slug = _SLUG.sub("-", profile.name.lower())[:_MAX_SLUG_LENGTH].strip("-") or "profile"
    aspen, xml, text = "application/x-apple-aspen-config", "application/xml", "text/plain; charset=utf-8"
    if profile.ssids:
        yield ProfileFile(
            f"{slug}.mobileconfig", Kind.APPLE, "iPhone, iPad and Mac", aspen, partial(apple.wireless, profile)
        )
    if profile.wired:
        yield ProfileFile(
            f"{slug}-wired.mobileconfig", Kind.APPLE, "Mac, wired network", aspen, partial(apple.wired, profile)
        )
    for number, ssid in enumerate(profile.ssids, 1):
        yield ProfileFile(f"{slug}-{number}.xml", Kind.WINDOWS, f"Windows, Wi-Fi {ssid}", xml, _windows(profile, ssid))
    if profile.wired:
        yield ProfileFile(f"{slug}-wired.xml", Kind.WINDOWS, "Windows, wired network", xml, _windows(profile, None))
    if profile.ssids:
        yield ProfileFile(
            f"{slug}-onc.json",
            Kind.ANDROID,
            "Management of Android and ChromeOS",
            "application/json",
            lambda trust, _user: android.network_configuration(profile, trust),
        )
    for number, ssid in enumerate(profile.ssids, 1):
        yield ProfileFile(
            f"{slug}-{number}.nmconnection",
            Kind.NETWORK_MANAGER,
            f"Linux with NetworkManager, Wi-Fi {ssid}",
            text,
            _key_file(profile, ssid),
        )
    if profile.wired:
        yield ProfileFile(
            f"{slug}-wired.nmconnection",
            Kind.NETWORK_MANAGER,
            "Linux with NetworkManager, wired network",
            text,
            _key_file(profile, None),
        )
    yield ProfileFile(
        f"{slug}-wpa_supplicant.conf",
        Kind.WPA_SUPPLICANT,
        "Linux with wpa_supplicant",
        text,
        partial(linux.wpa_supplicant, profile),
    )
    yield ProfileFile(
        f"{slug}-authority.crt",
        Kind.AUTHORITY,
        "The server's authority, for Windows and Android",
        "application/x-x509-ca-cert",
        lambda trust, _user: "".join(each.pem for each in trust.anchors).encode(),
    )


def _windows(profile: Profile, ssid: str | None) -> Callable[[Trust, str], bytes]:
    """Return the function that makes a file for Windows, which asks for the user name itself."""

    def make(trust: Trust, _user: str) -> bytes:
        return windows.wired(profile, trust) if ssid is None else windows.wireless(profile, trust, ssid)

    return make


def _key_file(profile: Profile, ssid: str | None) -> Callable[[Trust, str], bytes]:
    return lambda trust, user: linux.key_file(profile, trust, ssid, user)
