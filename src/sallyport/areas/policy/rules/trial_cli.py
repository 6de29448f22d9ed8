"""`sallyport rule test`: show the rule that decides a login, and the reason."""

import click

from sallyport.base.errors import NotFound
from sallyport.base.text import fold
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, domains, entries, named

READ = ("position", "ruleId", "name", "action", "result", "scope", "has")


@click.command()
@click.option("--user", required=True, help="User name, with or without a realm.")
@click.option("--client", default="", help="RADIUS client that sends the login: a name or an address.")
@click.option(
    "--domain", help="Name or domainId of the domain. Default: the domain that the client and the realm select."
)
@click.option("--at", default="", help="Time of the login in ISO 8601; UTC if it has no time zone. Default: now.")
@click.option("--station", default="", help="Calling-Station-Id; a MAC address may be in any notation.")
@click.option("--nas", default="", help="Address of the NAS behind the client (NAS-IP-Address).")
@click.option("--nas-identifier", "nasIdentifier", default="", help="Name that the NAS sends (NAS-Identifier).")
@click.option(
    "--medium", default="", help="Medium of the NAS port, such as Ethernet. Default: the medium in the inventory."
)
@click.option(
    "--service-type", "serviceType", default="", help="Service-Type: a number, or a name such as Login or Framed."
)
@click.option(
    "--group", "groups", multiple=True, help="A group of the user, as an LDAP server would return it; repeatable."
)
@click.option("--ou", "ous", multiple=True, help="An organizational unit of the user; repeatable.")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.pass_obj
def test(line: CommandLine, /, *, user: str, client: str, domain: str | None, form: Form | None, **facts: JSON) -> None:
    """Show which rule decides a login with a correct password, and why each rule before it does not decide.

    Nothing is stored, and the user is not asked for a second factor.
    """
    if domain is None:
        if not client:
            raise click.UsageError("give --domain or --client, to select the domain whose rules are tested")
        domain = str(_domain_of(line, user, client)["domainId"])
    body: Row = {"user": user, "client": client}
    for name, value in facts.items():
        body[name] = list(value) if isinstance(value, tuple) else value
    tested = line.run("/ad/TestLoginRules", body, domain=domain)
    if form == "json":
        line.print_json(tested)
        return
    if tested["rules"]:
        line.print_rows(entries(tested["rules"]), READ)
    for text in _outcome(tested):
        line.print(text)
    warnings = tested["warnings"]
    for warning in warnings if isinstance(warnings, list) else ():
        line.note(f"warning: {warning}")


def _outcome(tested: Row) -> list[str]:
    """Return the result of a test as lines, one for each step."""
    password = tested["firstFactorReason"]
    second, provider = tested["secondFactorReason"], tested["secondFactor"] or "no MFA provider"
    steps = [f"{tested['message']}"]
    if tested["bypass"]:
        steps.append("first factor: none; the station is admitted by its MAC address")
    else:
        steps.append(f"first factor: {tested['firstFactor']}, {password or 'taken as passed'}")
        steps.append(f"second factor: {provider}, {second or 'not asked'}")
    if tested["lockedOut"]:
        steps.append("locked out; `sallyport lockout remove` ends the lock-out")
    reason = f" ({tested['reason']})" if tested["reason"] else ""
    mode = f"{tested['enforcementMode']}, fallback {tested['fallbackAction']}"
    decided = f"decision: {tested['decision']}{reason}"
    if tested["decision"] != tested["appliedDecision"]:
        decided += f"; sent: {tested['appliedDecision']}"
    return [*steps, f"domain {tested['domainName']}: {mode}", decided]


def _domain_of(line: CommandLine, user: str, client: str) -> Row:
    """Return the domain to which a user's logins through a RADIUS client belong. Raises NotFound."""
    path = "/network_device/ListClients"
    own = list(line.listed_everywhere(path, "clients"))
    same = [each for each in own if each["address"] == client or fold(str(each["name"])) == fold(client)]
    if len({(each["org"], each["tenant"]) for each in same}) > 1:
        raise NotFound(f'several tenants have a RADIUS client "{client}": name a domain with --domain')
    found = same[0] if len(same) == 1 else named(own, "name", client, "RADIUS client")
    ids = found["domainIds"]
    every = [each for each in domains(line, None) if (each["org"], each["tenant"]) == (found["org"], found["tenant"])]
    if isinstance(ids, list) and ids:
        every = [each for number in ids for each in every if each["domainId"] == number]
    realm = user.partition("\\")[0] if "\\" in user else user.rpartition("@")[2] if "@" in user else ""
    fit = [each for each in every if not realm or fold(realm) in _realms(each)]
    if not fit:
        what = "no domain has this realm" if every else "its tenant has no domain"
        raise NotFound(f"RADIUS client {found['name']}: {what}; name a domain with --domain")
    return fit[0]


def _realms(domain: Row) -> set[str]:
    realms = domain["realms"]
    return {fold(str(each)) for each in (domain["domainName"], *(realms if isinstance(realms, list) else ()))}
