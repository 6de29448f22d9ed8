"""The entrance of profiles."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from starlette.routing import BaseRoute

from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.profiles import operations as api
from sallyport.areas.profiles import page, repo
from sallyport.areas.profiles.configured import ProfileKind
from sallyport.areas.profiles.service import Profiles
from sallyport.areas.profiles.signing import ProfileSigner
from sallyport.areas.profiles.trust import ServerTrust
from sallyport.certs.folder import CertificateFolder, present
from sallyport.radius.eap.server_certificate import ServerCertificate
from sallyport.settings.settings import Settings
from sallyport.store.erasure import Rows
from sallyport.store.model import Tx
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class ProfilesArea(Area):
    """Profiles of networks, for the devices of users.

    certificates: a function that returns the server certificates of a domain by realm, or None if the domain has none.
    """

    erased_rows = (Rows("network_profiles", "network profiles"),)

    def __init__(
        self, parts: Parts, domains: Domains, certificates: Callable[[int], Mapping[str, ServerCertificate] | None]
    ) -> None:
        settings = parts.settings
        self._parts, self._domains = parts, domains
        own = CertificateFolder(settings.data_dir).ca
        trust = ServerTrust(parts.certificates.server, certificates, own, partial(present, parts.clock))
        self._signer = ProfileSigner(settings.profile_certificate, settings.profile_key)
        self.service = Profiles(parts.store, trust, self._signer, parts.clock)
        self.configured = (ProfileKind(self.service),)

    def apply(self, settings: Settings) -> None:
        """Sign with the key of the settings."""
        self._signer.use(settings.profile_certificate, settings.profile_key)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of profiles."""
        return [api.operations(self.service, self._domains, self._link_to, gate)]

    def routes(self, gate: Gate) -> Sequence[BaseRoute]:
        """Return the page of a link, and its files."""
        return page.routes(self.service, self._domains)

    def revoke(self, tx: Tx, at: int) -> None:
        """End all links, because they may have been ended after the backup."""
        repo.end_links(tx, at)

    def _link_to(self, link: str) -> str:
        return f"{self._parts.link_base()}{page.PATH}{link}"
