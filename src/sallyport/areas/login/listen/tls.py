"""The TLS context of RadSec. It requires TLS 1.2 or newer and a client certificate (RFC 6614 section 2.3)."""

import ssl

from sallyport.base.errors import ConfigError
from sallyport.base.tls import server_context
from sallyport.certs.credentials import Credentials

_LIST = "-----BEGIN X509 CRL-----"


def radsec_context(files: Credentials) -> ssl.SSLContext:
    """Return a server context that accepts client certificates of the authority. Revoked certificates are not accepted.
    Raises ConfigError.

    Sessions cannot be resumed. If they could, a certificate could be used after its revocation.
    """
    if files.ca_file is None:
        raise ConfigError(
            "RadSec has no authority for the certificates of its peers: set eap_ca, or run sallyport cert init"
        )
    context = server_context()
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_cert_chain(files.certificate_file, files.key_file, password=_no_password)
        context.load_verify_locations(files.ca_file)
        if files.crl_file is not None:
            context.load_verify_locations(files.crl_file)
        if files.crl_file is not None or _LIST in files.ca_file.read_text(encoding="utf-8", errors="replace"):
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    except (OSError, ssl.SSLError) as error:
        names = f"{files.certificate_file}, {files.key_file}, {files.ca_file}"
        raise ConfigError(f"certificates {names}: {error}") from error
    return context


def _no_password() -> str:
    """Return an empty passphrase. Without this function, OpenSSL would ask for a passphrase on the terminal."""
    return ""
