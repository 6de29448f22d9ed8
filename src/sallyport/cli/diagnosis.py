"""The cause of a failure of `sallyport check radius`: no answer, or a reject.

The RADIUS server does not send the cause. If the service runs on this machine, the command asks the service over the
control socket. If there was no answer, the command asks for dropped packets from the address of the check. After a
reject, the command asks for the log entry of the rejected login.
"""

from itertools import islice
from shlex import quote
from typing import Final

from sallyport.base.errors import SallyportError, StartError
from sallyport.base.wire import Row
from sallyport.cli.line import Line
from sallyport.cli.radius import RadiusClient, Why
from sallyport.shell.command import domains, entries

MAX_DOMAINS: Final = 100

_NO_ANSWER: Final = {
    Why.REFUSED: "Is the service running (sallyport serve, systemctl status sallyport), and on this port?",
    Why.UNREACHABLE: "Check the address, and the route and the firewall on the way.",
    Why.SILENT: "A RADIUS server is silent if the sender is not its client, or if the secret is wrong. A "
    "firewall may drop packets, too.",
    Why.UNPROVEN: "The server has another secret: use the secret that `sallyport client add` has printed.",
    Why.MALFORMED: "The program at this address is not a RADIUS server: check the port.",
}

NOT_ENROLLED: Final = "not enrolled"
_CHECK_PROVIDER: Final = "sallyport provider check {domain} names the cause"
REMEDIES: Final = {
    "unknown user": "sallyport user add {user} --domain {domain} --password -",
    "unknown realm": "no domain of the client has this realm: sallyport domain list",
    "the RADIUS client has no domain": "sallyport domain add NAME --org N --tenant N",
    "no provider": "the domain has no MFA provider: sallyport provider set, or sallyport domain mode {domain} monitor",
    NOT_ENROLLED: "the user has no second factor yet: enrol the user at the provider",
    "not strong enough": "the login rule demands a stronger second factor: sallyport rule test --domain {domain} "
    "--user {user} shows the rule",
    "provider unreachable": _CHECK_PROVIDER,
    "provider unreachable, circuit open": _CHECK_PROVIDER,
    "the provider's rate limit is reached": _CHECK_PROVIDER,
    "provider configuration unreadable": "sallyport provider set {domain} stores the configuration again",
    "second factor not answered in time": "sallyport provider check {domain}; if it works, the user did not answer "
    "in time; sallyport provider set --timeout-seconds changes the time",
    "not me": "the user says that somebody else logs in: reset the password; then sallyport prompt-pause end --domain "
    "{domain} --user {user}",
    "too many prompts": "sallyport prompt-pause list --domain {domain} shows whether the user gets no prompt now",
    "blocked by rule": "sallyport rule test --domain {domain} --user {user} shows the rule",
    "too many sessions": "sallyport session list --live --domain {domain} --user {user} shows the sessions",
    "locked out after failures": "sallyport lockout remove --domain {domain} --user {user}",
    "station locked out after failures": "sallyport lockout list shows the station; sallyport lockout remove --domain "
    "{domain} --station STATION unlocks it",
    "the RADIUS client may not vouch for passwords": "sallyport client set NAME --password-verified, if the "
    "RADIUS client checks passwords",
    "unbound login": "the device must sign its requests and send the address of the station: sallyport provider show "
    "{domain} shows the binding",
    "no identity provider has confirmed the user": "sallyport doctor says what the first factor web needs",
    "a request without a checked password is not signed": "turn on Message-Authenticator at the device",
    "code not returned": "where nothing can be typed, sallyport provider set {domain} own --binding address",
    "this kind of login cannot ask for a code": "try without --chap, or append the code to the password",
    "the domain's first factor is not configured": "sallyport domain first-factor {domain}",
}
_ENROLLING: Final = {
    "totp": "the user has no authenticator app yet: sallyport user totp {user} --domain {domain}",
    "own": "the user has none of the accepted factors: sallyport user totp {user} --domain {domain}, or sallyport user "
    "bypass-codes {user} --domain {domain}",
    "wallet": "the user holds no valid credential of the provider's issuer: sallyport credential list --domain {domain}"
    " shows whether it is assigned, revoked or expired; sallyport wallet assign gives it to the user's wallet",
}
"""Remedies for the reason `not enrolled`, by MFA provider."""
_CHECK: Final = "sallyport domain check {domain} --user {user} shows each step"


def explain_silence(line: Line, client: RadiusClient, why: Why, began: str) -> None:
    """Print why there was no authentic answer, if the cause can be found. began: the start of the check, in ISO
    8601."""
    line.note(_NO_ANSWER[why])
    if why is not Why.SILENT:
        return
    line.note(f"The packets came from {client.source}.")
    try:
        if line.connection.process_id(wait=False) is None:
            raise StartError(f"no service runs in {line.settings().data_dir}")
        senders = line.rows("listen.senders", own=True)
    except SallyportError as error:
        line.note(f"On this machine: {error}")
        return
    data_dir = line.settings().data_dir
    for sender in senders:
        if sender["address"] == client.source and str(sender["last"]) >= began:
            line.note(f"The service of {data_dir} dropped a packet of {client.source}: {sender['verdict']}")
            if sender["remedy"]:
                line.note(f"What to do: {sender['remedy']}")
            return
    line.note(
        f"The service of {data_dir} runs and has dropped no packet of {client.source}: another server has this port, "
        "or the first factor does not answer (sallyport doctor, and the log)"
    )


def explain_reject(line: Line, client: RadiusClient, nas: str, began: str) -> None:
    """Print why a login was rejected, if the service on this machine has rejected it. began: the start of the check, in
    ISO 8601."""
    event = _event(line, client, nas, began)
    if event is None:
        line.note("The reason is in the log of the server. On the server, run: sallyport event list --domain D")
        return
    reason, names = str(event["reason"]), {name: quote(str(event[name])) for name in ("domain", "user")}
    line.note(f"Refused in domain {event['domain']}: {reason}")
    remedy = remedy_for(reason, str(event["factor"]))
    if remedy:
        line.note(f"What to do: {remedy.format(**names)}")


def remedy_for(reason: str, factor: str) -> str:
    """Return the remedy for a reject. Return "" if no remedy is known. factor: the field `factor` of the event, such as
    `local+totp`."""
    if reason == NOT_ENROLLED and (found := _ENROLLING.get(factor.rpartition("+")[2])):
        return found
    checks_first_factor = (
        factor != "local" and "+" not in factor
    )  # `local+totp` means that the first factor was correct
    return REMEDIES.get(reason, _CHECK if checks_first_factor and reason != "wrong password" else "")


def _event(line: Line, client: RadiusClient, nas: str, began: str) -> Row | None:
    """Return the log entry of the rejected login. Return None if the service on this machine has no such entry."""
    try:
        if line.connection.process_id(wait=False) is None:
            return None
        body: Row = {"from": began, "search": nas, "pageSize": 20}
        for domain in islice(domains(line, None), MAX_DOMAINS):
            answer = line.run("/ad/GetAuthLog", body, domain=str(domain["domainId"]))
            for event in entries(answer["events"]):
                own = event["ip_address"] == client.source and event["device_name"] == nas
                if own and event["appliedDecision"] == "reject":
                    return event
    except SallyportError:
        return None
    return None
