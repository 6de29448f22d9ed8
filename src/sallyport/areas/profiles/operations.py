"""HTTP operations of profiles: /ad/...Profile(s)."""

from base64 import b64encode
from collections.abc import Callable, Sequence

from sallyport.areas.domains.service import Domains
from sallyport.areas.profiles.android import typed_settings
from sallyport.areas.profiles.bodies import (
    GetProfileFile,
    ListProfiles,
    MakeProfileLink,
    ProfileDetail,
    ProfileFileContent,
    ProfileLink,
    ProfileList,
    RemoveProfile,
    SetProfile,
    ShowProfile,
)
from sallyport.areas.profiles.files import files_of
from sallyport.areas.profiles.profile import SETTINGS, Profile, Trust, warnings_of
from sallyport.areas.profiles.service import Profiles
from sallyport.base.answer import answer, answers
from sallyport.base.clock import iso_or_empty
from sallyport.base.errors import Conflict
from sallyport.base.model import Done, given
from sallyport.base.text import fold
from sallyport.base.wire import Row
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, OPERATORS, READERS, Caller, Gate


def operations(service: Profiles, domains: Domains, link_to: Callable[[str], str], gate: Gate) -> Operations:
    """Declare the operations. Only an admin may change profiles, because they decide which server devices trust.

    link_to: a function that returns the URL of the page for the last part of a link.
    """
    profiles = Operations("Profiles", gate)

    def entry(profile: Profile, hints: Sequence[str] = ()) -> Row:
        domain = domains.table.present(profile.domain_id)
        return answer(profile, warnings=[*warnings_of(profile, domain), *hints])

    @profiles.post("/ad/ListProfiles", roles=READERS)
    async def list_profiles(body: ListProfiles, caller: Caller) -> Plain[ProfileList]:
        """List the network profiles of a domain, ordered by name."""
        needle, page = fold(body.search), body.page()
        found = [each for each in await service.of_domain(body.domainId) if needle in fold(each.name)]
        shown = [entry(each) for each in found[page.offset : page.offset + page.size]]
        return Plain({"profiles": shown, "totalCount": len(found)})

    @profiles.post("/ad/ShowProfile", roles=READERS)
    async def show_profile(body: ShowProfile, caller: Caller) -> Plain[ProfileDetail]:
        """Return a profile with its files, and with what devices will trust: the names and the authority of the present
        server certificate, or those of the profile."""
        profile = await service.present(body.domainId, body.name)
        trust, problem = Trust(), ""
        try:
            trust = await service.trust_of(profile, caller.tenant_id)
        except Conflict as error:
            problem = str(error)
        typed = typed_settings(profile, trust) if profile.ssids else []
        return Plain(
            {
                **entry(profile, trust.warnings),
                "trustedNames": list(trust.server_names),
                "trustedAnchors": [{"name": each.name, "sha1": each.sha1} for each in trust.anchors],
                "problem": problem,
                "files": answers(files_of(profile)),
                "androidSettings": [{"title": title, "value": value} for title, value in typed],
            }
        )

    @profiles.post("/ad/SetProfile", roles=ADMINS)
    async def set_profile(body: SetProfile, caller: Caller) -> Done:
        """Change a network profile. A profile that does not exist is added; it needs an SSID or a wired network.

        A field that is absent keeps its value. A new profile gets a method that the domain's first factor can check,
        and an outer identity with the domain's realm. Devices get the change with the next file that is installed.
        """
        domain = domains.table.present(body.domainId)
        changes = {name: _stored(value) for name, value in given(body, SETTINGS).items()}
        profile = await service.set(domain, body.name, changes)
        return Done(message="; ".join([f"profile {profile.name} set", *warnings_of(profile, domain)]))

    @profiles.post("/ad/RemoveProfile", roles=ADMINS)
    async def remove_profile(body: RemoveProfile, caller: Caller) -> Done:
        """Remove a profile and its link. Devices that have its files keep them."""
        await service.remove(body.domainId, body.name)
        return Done(message="profile removed")

    @profiles.post("/ad/GetProfileFile", roles=READERS)
    async def get_profile_file(body: GetProfileFile, caller: Caller) -> Plain[ProfileFileContent]:
        """Return a file of a profile. It contains no secret. Files for Apple are signed, if the service has a key for
        it."""
        profile = await service.present(body.domainId, body.name)
        made = await service.made(profile, caller.tenant_id, body.file, body.userName)
        content = b64encode(made.content).decode()
        return Plain({"file": made.file.file, "mediaType": made.file.media_type, "content": content})

    @profiles.post("/ad/MakeProfileLink", roles=OPERATORS)
    async def make_profile_link(body: MakeProfileLink, caller: Caller) -> ProfileLink:
        """Make a link to a page with the files of a profile, for devices without a sign-in. The former link ends."""
        profile, link = await service.make_link(body.domainId, body.name, body.days)
        return ProfileLink(
            message="link made" if link else "link ended",
            link=link_to(link) if link else "",
            linkExpiresAt=iso_or_empty(profile.link_expires_at),
        )

    return profiles


def _stored(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
