"""The files that agents start with."""

from typing import Final

_HEAD: Final = """\
# The file of a sallyport {agent} agent. It holds secrets: chmod 600. The agent puts a key of its own in the place of
# the enrolment key at its first start.
service = "{service}"
# ca_certificate = "/etc/sallyport/ca.pem"   # PEM, trusted in place of the system's
# state_dir = "/var/lib/sallyport-agent"
enrolment_key = "{key}"

[{agent}]
"""
_ENDPOINT: Final = ""
_DIRECTORY: Final = ""


def agent_file(agent: str, *, service: str, key: str) -> str:
    """The text of an agent's file, complete but for what only its host knows."""
    own = _DIRECTORY if agent == "directory" else _ENDPOINT
    return _HEAD.format(agent=agent, service=service, key=key) + own
