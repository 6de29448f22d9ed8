"""Why a sender gets no answer: a verdict and a remedy for each cause.

`client unknown`, `doctor`, `check radius` and the log use the same texts. The cause is found from three things: the
reason why the last datagram was dropped, the current state of the RADIUS client, and the contents of the datagram. The
datagram may be forged.
"""

from dataclasses import dataclass
from shlex import quote
from typing import Final

from sallyport.areas.clients.client import Client, Signatures
from sallyport.areas.login.login import Reason
from sallyport.radius.attributes import EAP_MESSAGE
from sallyport.radius.packet import STATUS_SERVER, Request

GARBLED: Final = "garbled_password"
"""The reason why a sender is listed, if its login was unsigned and its password was probably encrypted with another
secret."""
UNKNOWN: Final = "unknown_client"
UNPROVEN: Final = "unverified"
"""The reason why a sender is listed, if its login was unsigned and has failed."""

CERTIFICATE: Final = "unknown_certificate"
"""The reason why a RadSec peer is listed, if its certificate is valid and belongs to no RADIUS client."""
OF_CONNECTIONS: Final = frozenset({"handshake", "overload", CERTIFICATE})
"""The reasons for which a RadSec connection is refused before its first packet."""

UNKNOWN_CLIENT: Final = "no RADIUS client has this address"
WRONG_SECRET: Final = "wrong secret"  # noqa: S105  a verdict
UNSURE: Final = Reason.WRONG_PASSWORD_OR_SECRET.value
UNSIGNED: Final = "unsigned, and the client must sign"
NEVER_UNSIGNED: Final = "EAP or Status-Server without Message-Authenticator"
PROXY_STATE: Final = "Proxy-State without a signature"
FAILED: Final = "unsigned logins that failed"
OTHER_PORT: Final = "a request for the other port"
NO_DOMAIN: Final = "the client's tenant has no domain"
OVERLOAD: Final = "too many requests wait"
OTHER_NAME: Final = "no RADIUS client of its tenant has the name in the certificate"
HANDSHAKE: Final = "the TLS handshake failed"
INTERNAL: Final = "the service failed"
NOISE: Final = "noise: no RADIUS request"
REFUSED: Final = "a known client whose packets are refused"

_WRONG_SECRET: Final = frozenset({"bad_authenticator", "bad_message_authenticator"})
_SETTINGS: Final = {
    "Microsoft NPS": "'must contain message authenticator' of the server in its Remote RADIUS Server Group",
    "Cisco ISE": "Message-Authenticator under Allowed Protocols",
    "FreeRADIUS": "require_message_authenticator = yes in its home_server",
    "Fortinet FortiGate": "require-message-authenticator under config user radius",
    "MikroTik RouterOS": "require-message-auth=yes-for-request-resp under /radius (7.15)",
    "pam_radius": "require_message_authenticator in pam_radius_auth.conf; version 2.0.0 cannot sign",
}
"""For each product, the setting that turns on Message-Authenticator."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason why a sender gets no answer. verdict: the reason, in words. remedy: what an admin can do, or empty."""

    verdict: str
    remedy: str = ""


def cause_of(reason: str, host: str, client: Client | None, request: Request | None, product: str) -> Cause:
    """Return the reason why datagrams from an address were dropped.

    reason: the label of the drop in metrics. host: the source address. request: the last datagram, or None if it is no
    RADIUS request. product: the sender's product, or empty if unknown.
    """
    if reason == "handshake":
        return Cause(
            HANDSHAKE, "see radsec_refused in the log: the peer needs a certificate from the authority of this service"
        )
    if reason not in {*_WRONG_SECRET, GARBLED, UNPROVEN} and request is None:
        return Cause(NOISE)
    if client is None:
        return Cause(UNKNOWN_CLIENT, f"sallyport client add NAME --from-unknown --address {host} --org N --tenant N")
    return _of_client(reason, client, request, client.product or product)


def of_certificate(host: str, option: str) -> Cause:
    """Return the reason why a RadSec peer with a valid certificate was refused. option: the option of `client add` that
    identifies the certificate."""
    return Cause(
        OTHER_NAME,
        f"compare it with the column tls of sallyport client list; for a new peer: sallyport client add NAME {option} "
        f"--address {host} --org N --tenant N",
    )


def _of_client(reason: str, client: Client, request: Request | None, product: str) -> Cause:
    name = quote(client.name)
    if reason == GARBLED:
        return Cause(
            UNSURE,
            f"enter the secret of RADIUS client {name} at the device again, unless the user has mistyped the password",
        )
    if reason in _WRONG_SECRET:
        return Cause(WRONG_SECRET, f"enter the secret of RADIUS client {name} at the device again")
    if reason == "unsigned":
        return _of_unsigned(client, name, request, product)
    if reason == "proxy_state":
        learned = client.limit_proxy_state is Signatures.AUTO
        other = f"sallyport client {'unlatch' if learned else 'set'} {name}"
        return Cause(PROXY_STATE, f"{_sign(product)}, or {other}{'' if learned else ' --limit-proxy-state auto'}")
    causes = {
        UNPROVEN: Cause(
            FAILED, "see the reasons with sallyport event list; an unsigned request does not prove its sender"
        ),
        "unknown_type": Cause(OTHER_PORT, "set port 1812 for authentication and 1813 for accounting at the device"),
        "no_domain": Cause(NO_DOMAIN, "sallyport domain add NAME --org N --tenant N"),
        "overload": Cause(OVERLOAD, "see sallyport_radius_discards_total; the setting is max_waiting_requests"),
        "internal_error": Cause(
            INTERNAL, "see radius_request_failed or store_not_writable in the log, and sallyport doctor"
        ),
    }
    return causes.get(reason, Cause(REFUSED, f"see the metric sallyport_radius_discards_total, reason {reason}"))


def _of_unsigned(client: Client, name: str, request: Request | None, product: str) -> Cause:
    if request is not None and (request.code == STATUS_SERVER or EAP_MESSAGE in request.first):
        return Cause(NEVER_UNSIGNED, f"{_sign(product)}: EAP and Status-Server always need it (RFC 3579, RFC 5997)")
    if not client.signature_required:
        return Cause(UNSIGNED, f"nothing to do: unsigned requests of {name} are accepted now")
    if client.require_message_authenticator is Signatures.AUTO:
        return Cause(
            UNSIGNED,
            f"the client has signed before: {_sign(product)}; if it cannot sign, sallyport client unlatch {name}",
        )
    option = "--require-message-authenticator auto"
    return Cause(UNSIGNED, f"{_sign(product)}; if it cannot sign, sallyport client set {name} {option}")


def _sign(product: str) -> str:
    setting = _SETTINGS.get(product)
    return "turn on Message-Authenticator at the device" + (f" ({setting})" if setting else "")
