"""Checks of the service's data: RADIUS clients, domains, dropped packets, devices, agents, directories and nodes."""

from collections.abc import Iterator, Sequence
from ipaddress import ip_address, ip_network
from typing import Final, cast

from cryptography import x509

from sallyport.areas.directory.imports.bodies import ended_readings
from sallyport.areas.directory.schedules.bodies import is_overdue, is_too_old
from sallyport.areas.policy.rules.conditions import CONDITIONS
from sallyport.base.clock import now_us
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.tags import as_texts, folded_tag, is_selected
from sallyport.base.text import counted
from sallyport.base.wire import Row
from sallyport.certs.authority import common_name
from sallyport.certs.folder import present
from sallyport.cli.checks.certificates import of_time
from sallyport.cli.checks.model import Examination, Finding, ok, problem, warning
from sallyport.radius.vendors.stepups import unable
from sallyport.shell.command import entries

LISTED = 5
LOOKED_AT = 100
STATUS: Final = "/api/v1/getImportStatus"


def check_clients(examination: Examination) -> Iterator[Finding]:
    """Check that each RADIUS client has a domain and a strong secret. A client with an address range must also have
    explicit settings for signatures."""
    clients, domains = examination.clients, examination.domains
    if not clients:
        yield warning("no RADIUS client: no request gets an answer; run sallyport client add")
        return
    weak = examination.rows("client.weaknesses")
    yield ok(f"{counted(len(clients), 'RADIUS client')}, {len({each['client'] for each in weak})} with a weakness")
    for each in weak:
        yield warning(f"{each['client']} ({each['address']}): {each['weakness']}")
    for client in clients:
        if not any(_serves(client, domain) for domain in domains):
            yield warning(
                f"{client['name']} ({client['address']}): its tenant has no domain, so its logins are rejected; "
                "run sallyport domain add"
            )


def check_proxy_state(examination: Examination) -> Iterator[Finding]:
    """Check that no active client sends Proxy-State without a Message-Authenticator (CVE-2024-3596)."""
    undecided = [
        each
        for each in examination.clients
        if each["limitProxyState"] == "auto" and not each["proxyStateLimited"] and not each["signatureRequired"]
    ]
    single = [each for each in undecided if ip_network(str(each["address"])).num_addresses == 1]
    heard = [each for each in single[:LOOKED_AT] if _has_sent_proxy_state(examination, each)]
    for each in heard:
        yield warning(
            f"{each['name']} ({each['address']}) has so far sent only requests with Proxy-State and without "
            "Message-Authenticator (CVE-2024-3596): enable Message-Authenticator on the client"
        )
    if not heard:
        yield ok("no client is known to send Proxy-State without a signature")


def _has_sent_proxy_state(examination: Examination, client: Row) -> bool:
    """Return whether a device with the address of a RADIUS client has sent a Proxy-State without a
    Message-Authenticator. The client must have a single address, not an address range."""
    for domain in examination.domains:
        body: Row = {"search": client["address"], "pageSize": 100}
        page = examination.line.run("/network_device/ListDevices", body, domain=str(domain["domainId"]))
        for device in entries(page["network_devices"]):
            if device["ip_address"] == client["address"] and device["unsigned_proxy_state"]:
                return True
    return False


def check_domains(examination: Examination) -> Iterator[Finding]:
    """Check that each domain has RADIUS clients and a first factor, and that each domain in enforce mode has an MFA
    provider."""
    domains, clients = examination.domains, examination.clients
    enforcing = sum(each["enforcementMode"] == "enforce" for each in domains)
    yield ok(f"{counted(len(domains), 'domain')}, {enforcing} in enforce mode")
    if any(each["breakGlass"] == "enforce" for each in domains):
        yield warning(
            "break-glass is active: no login is asked for a second factor; when the MFA provider works again, run "
            "sallyport domain mode --all restore"
        )
    for domain in domains:
        warnings = domain["warnings"]
        for text in warnings if isinstance(warnings, list) else ():
            yield warning(f"{domain['domainName']}: {text}")
        serving = [client for client in clients if _serves(client, domain)]
        if not serving:
            yield warning(f"{domain['domainName']}: no RADIUS client belongs to it; run sallyport client add --domain")
        rules = list(examination.line.listed("/ad/ListLoginRules", "rules", domain=str(domain["domainId"])))
        yield from _of_own(examination, domain)
        yield from _exempting_all(rules, domain)
        yield from _claiming(rules, serving, domain)
        yield from _without_tagged(examination, rules, serving, domain)
        if domain["firstFactor"] == "none":
            yield _trusted_clients(domain, serving)
        elif domain["firstFactor"] not in ("local", "web"):
            yield from _unconfigured(examination, domain)


def _of_own(examination: Examination, domain: Row) -> Iterator[Finding]:
    """Report the products of a domain's devices, at most of the first page of them, that cannot have the binding of the
    provider `own`. Their users can only append a code to the password."""
    try:
        provider = examination.line.run("/ad/GetMFAProvider", domain=str(domain["domainId"]))
    except (NotFound, Conflict):  # the domain has no provider, or its configuration cannot be read
        return
    factors = str(provider.get("factors", ""))
    if provider["provider"] != "own" or not set(factors.split(",")) - {"totp", "bypass"}:
        return
    page = examination.line.run("/network_device/ListDevices", {"pageSize": 100}, domain=str(domain["domainId"]))
    products = {str(each["nas_device_type"]) for each in entries(page["network_devices"])}
    found = unable(products, str(provider["binding"]), has_mail=bool(provider.get("pageByMail")))
    if found:
        yield warning(
            f"{domain['domainName']}: the binding {provider['binding']} is not possible with {', '.join(found)}: their "
            "users can only append a code to the password; the guide of second factors has a table of products"
        )


def check_authorities(examination: Examination) -> Iterator[Finding]:
    """Report authorities of domains that may speak for the same users, or whose certificates expire. Also report their
    modes and lists of revocation."""
    found = list(examination.line.listed_everywhere("/ad/ListAuthorities", "authorities"))
    if found:
        yield ok(f"{counted(len(found), 'authority', 'authorities')} of domains")
    for each in found:
        warnings = each["warnings"]
        for text in warnings if isinstance(warnings, list) else ():
            yield warning(f"authority {each['name']}: {text}")
    if found:
        yield from _revocation(examination, found)


def _revocation(examination: Examination, authorities: Sequence[Row]) -> Iterator[Finding]:
    """Report the modes of authorities, and the revocation lists that are late."""
    soft = [str(each["name"]) for each in authorities if each["revocation"] == "soft"]
    if soft:
        names = ", ".join(soft[:LISTED]) + (", ..." if len(soft) > LISTED else "")
        yield ok(f"revocation is soft, so certificates in an unknown state are accepted: {names}")
    names_of = {each["authorityId"]: each["name"] for each in authorities}
    for each in examination.line.listed_everywhere("/ad/ListRevocationLists", "lists"):
        if each["state"] != "valid" or each["error"]:
            yield of_list(str(names_of.get(each["authorityId"], each["authorityId"])), each)


def of_list(authority: str, found: Row) -> Finding:
    """Return the finding about a revocation list that is late, or that was not fetched. A valid list is in use although
    the last fetch has failed."""
    state = "valid, but the last fetch has failed" if found["state"] == "valid" else found["state"]
    reason = found["error"] or "the authority has not published a newer list"
    return warning(
        f"authority {authority}: revocation list {found['address']} is {state}: {reason}; check the address, then run "
        f"sallyport authority lists {authority} --fetch"
    )


def _claiming(rules: Sequence[Row], serving: Sequence[Row], domain: Row) -> Iterator[Finding]:
    """Report each login rule that allows by claims of the sender, if a RADIUS client of the domain may send claims. A
    rule that is only for stations is left out: they are never asked for a second factor."""
    unproven = [
        str(client["name"])
        for client in serving
        if not client["signatureRequired"] or ip_network(str(client["address"])).num_addresses > 1
    ]
    for rule in rules if unproven else ():
        kinds = rule["kinds"]
        if kinds and isinstance(kinds, list) and {*kinds} <= {"station", "unknown"}:
            continue
        claims = [each.option for each in CONDITIONS if each.is_claim and rule[each.field]]
        if claims and rule["enabled"] and rule["action"] == "allow":
            yield warning(
                f"{domain['domainName']}: rule {rule['ruleId']} {rule['name']} allows by {', '.join(claims)}: it "
                "exempts no unsigned login, and no login of an address range; clients concerned: "
                f"{', '.join(unproven[:LISTED])}; require signatures (sallyport client set), and give each client a "
                "single address"
            )


def _without_tagged(
    examination: Examination, rules: Sequence[Row], serving: Sequence[Row], domain: Row
) -> Iterator[Finding]:
    """Report tags in enabled login rules that no device of the domain and no RADIUS client has: a tag that is misspelt
    never matches. At most LOOKED_AT tags are looked up."""
    named: dict[str, Row] = {}
    for rule in rules:
        tags = rule["tags"]
        if rule["enabled"] and isinstance(tags, list):
            for tag in map(str, tags):
                named.setdefault(tag, rule)
    of_clients = [tuple(as_texts(cast(dict[str, str], client["tags"]))) for client in serving]
    for tag, rule in [*named.items()][:LOOKED_AT]:
        if any(is_selected(tags, folded_tag(tag)) for tags in of_clients):
            continue
        body: Row = {"tag": tag, "pageSize": 1}
        page = examination.line.run("/network_device/ListDevices", body, domain=str(domain["domainId"]))
        if not page["totalCount"]:
            yield warning(
                f"{domain['domainName']}: rule {rule['ruleId']} {rule['name']} names the tag {tag}, which no device "
                "and no RADIUS client of the domain has; set it (sallyport client set, sallyport device set), or "
                "correct the rule (sallyport rule update)"
            )


def _exempting_all(rules: Sequence[Row], domain: Row) -> Iterator[Finding]:
    """Report each login rule that exempts all logins of a domain from the second factor."""
    for rule in rules:
        if rule["exemptsAll"] and rule["enabled"]:
            yield warning(
                f"{domain['domainName']}: rule {rule['ruleId']} {rule['name']} allows and has no scope: no login that "
                "it decides is asked for a second factor; give it a scope (sallyport rule update), or remove it"
            )


def _unconfigured(examination: Examination, domain: Row) -> Iterator[Finding]:
    """Report a first factor if its configuration is missing or invalid."""
    factor = str(domain["firstFactor"])
    found = examination.line.run("/ad/GetFirstFactor", domain=str(domain["domainId"])).get(factor)
    if not found:
        what = "is not configured" if found is None else "has a configuration that cannot be read"
        yield warning(
            f"{domain['domainName']}: its first factor {factor} {what}: no login works;"
            f" run sallyport domain first-factor {domain['domainName']}"
        )


def _trusted_clients(domain: Row, serving: list[Row]) -> Finding:
    """Return a finding about a domain whose first factor is `none`. The service does not check passwords in this
    domain. The finding lists the RADIUS clients that must check the passwords instead.

    serving: the RADIUS clients of the domain.
    """
    trusted = sorted(str(client["name"]) for client in serving if client["passwordVerified"])
    if not trusted:
        return warning(
            f"{domain['domainName']}: its first factor is none, and no client may vouch for passwords: run"
            f" sallyport domain first-factor {domain['domainName']}, or sallyport client set --password-verified"
        )
    return warning(
        f"{domain['domainName']}: the service checks no password here; these clients may vouch for any user: "
        f"{', '.join(trusted)};"
        " set a first factor unless they check passwords: sallyport domain first-factor"
    )


def _serves(client: Row, domain: Row) -> bool:
    own = client["domainIds"]
    if isinstance(own, list) and own:
        return domain["domainId"] in own
    return (client["org"], client["tenant"]) == (domain["org"], domain["tenant"])


def check_senders(examination: Examination) -> Iterator[Finding]:
    """Report the sources of packets that the service has dropped since its start."""
    if examination.process_id is None:
        yield ok("unknown: only a running service knows the dropped packets")
        return
    senders = examination.rows("listen.senders")
    if not senders:
        yield ok("no dropped packets since the start")
    for each in senders[:LISTED]:
        name = f" of {each['client']}" if each["client"] else ""
        remedy = f"; {each['remedy']}" if each["remedy"] else ""
        packets = f"{counted(each['packets'], 'packet')}, the last at {each['last']}"
        yield warning(f"{each['address']}{name}: {packets}: {each['verdict']}{remedy}")
    if len(senders) > LISTED:
        yield warning(f"and {len(senders) - LISTED} more: sallyport client unknown")


def check_silent(examination: Examination) -> Iterator[Finding]:
    """Check that each RADIUS client has sent a request. If a client has sent one, the inventory has a device with the
    client's address."""
    addresses = [ip_address(str(each["ip_address"])) for each in examination.rows("device.forwarders")]
    clients = examination.clients
    silent = [
        str(each["name"])
        for each in clients
        if not each["tlsName"]
        and not each["tlsFingerprint"]
        and not any(address in ip_network(str(each["address"])) for address in addresses)
    ]
    if silent:
        more = "" if len(silent) <= LISTED else f" and {len(silent) - LISTED} more"
        yield warning(
            f"no authentic login has come from these clients: {', '.join(silent[:LISTED])}{more};"
            " run sallyport client unknown, or remove them: sallyport client remove"
        )
    else:
        yield ok(f"all {len(clients)} clients have sent requests")


def check_devices(examination: Examination) -> Iterator[Finding]:
    """Report the number of devices. Also report the addresses of the devices that have an unknown product."""
    seen = examination.rows("device.forwarders")
    for domain in examination.domains:
        total = examination.line.run("/network_device/ListDevices", {"pageSize": 1}, domain=str(domain["domainId"]))[
            "totalCount"
        ]
        yield ok(f"{domain['domainName']}: {total}")
        unknown = [
            str(each["ip_address"]) for each in seen if each["domain_id"] == domain["domainId"] and _is_unknown(each)
        ]
        if unknown:
            more = "" if len(unknown) <= LISTED else f" and {len(unknown) - LISTED} more"
            yield warning(
                f"{domain['domainName']}: unknown product at {', '.join(unknown[:LISTED])}{more};"
                " sallyport client set NAME --product sets it"
            )


def check_agents(examination: Examination) -> Iterator[Finding]:
    """Check that every agent still sends messages."""
    for domain in examination.domains:
        body: Row = {"status": "Inactive", "pageSize": LISTED + 1}
        silent = examination.line.run("/api/v1/agent/listAgents", body, domain=str(domain["domainId"]))
        agents = entries(silent["agents"])
        for each in agents[:LISTED]:
            yield warning(
                f"{domain['domainName']}: {each['instanceName']} is silent since {each['lastSeen']};"
                " restart its agent, or look at its log"
            )
        if len(agents) > LISTED:
            yield warning(
                f"{domain['domainName']}: and {int(str(silent['totalCount'])) - LISTED} more; run sallyport agent list"
            )
        if not agents:
            yield ok(f"{domain['domainName']}: every agent sends messages")


def _is_unknown(seen: Row) -> bool:
    return seen["product"] in ("", "Unknown")


def check_directories(examination: Examination) -> Iterator[Finding]:
    """Check for each directory that the last import has succeeded, that no import is overdue, and that the certificates
    are valid."""
    for domain in examination.domains:
        number = str(domain["domainId"])
        line = examination.line
        listed = line.run("/api/v1/directory/listSchedules", domain=number)
        schedules = {each["directoryName"]: each for each in entries(listed["schedules"])}
        for each in line.listed("/api/v1/directory/list", "directories", domain=number):
            name = f"{domain['domainName']}: {each['directoryName']}"
            wanted: Row = {"DirectoryName": each["directoryName"]}
            jobs = entries(line.run(STATUS, [wanted], domain=number)["jobs"])
            yield _of_readings(name, each, jobs)
            if (each["readAt"] or ended_readings(jobs)) and is_too_old(each, domain["directoryMaxAgeHours"], now_us()):
                yield of_old_data(name, each, domain)
            schedule = schedules.get(each["directoryName"])
            if schedule is not None and examination.process_id is not None:
                yield from of_schedule(name, schedule)
            yield from _of_authorities(name, each)


def _of_readings(name: str, directory: Row, jobs: list[Row]) -> Finding:
    """Return a finding about the last import of a directory. If the directory is imported from files, the finding says
    only this."""
    if directory["kind"] == "ldif":
        return ok(f"{name}: from files")
    over = ended_readings(jobs)
    if not over:
        how = (
            "its agent has sent nothing yet; restart it, or look at its log"
            if directory["kind"] == "agent"
            else "run sallyport directory sync"
        )
        return warning(f"{name}: never read: {how}")
    last = over[0]
    if last["state"] != "FAILED":
        return ok(f"{name}: read at {last['endedAt']}")
    read = next(
        (f"at {each['endedAt']}" for each in over if each["state"] == "DONE"), "never, as far as the service knows"
    )
    return problem(
        f"{name}: import {last['jobId']} failed at {last['endedAt']}: {last['message']}; last read {read};"
        " run sallyport directory check, then sync"
    )


def of_old_data(name: str, directory: Row, domain: Row) -> Finding:
    """Return a finding about a cloud directory whose data are too old for logins by certificate."""
    text = f"{name}: the data of {directory['readAt']} are older than {domain['directoryMaxAgeHours']} hours"
    if not directory["readAt"]:
        text = f"{name}: it was never read completely"
    if domain["staleDirectoryAction"] == "allow":
        return warning(f"{text}, and logins by certificate are accepted by them; run sallyport directory sync")
    return problem(f"{text}, so logins by certificate are refused; run sallyport directory sync")


def of_schedule(name: str, schedule: Row) -> Iterator[Finding]:
    """Report an overdue import. schedule: an entry in the answer of listSchedules."""
    if is_overdue(schedule, now_us()):
        yield problem(f"{name}: the import that was due at {schedule['nextRun']} has not started; restart the service")


def _of_authorities(name: str, directory: Row) -> Iterator[Finding]:
    """Check the certificates in the field `caCertificate` of a directory."""
    settings = directory["settings"]
    pem = settings.get("caCertificate") if isinstance(settings, dict) else None
    try:
        authorities = x509.load_pem_x509_certificates(str(pem).encode()) if pem else []
    except ValueError:
        yield problem(
            f"{name}: caCertificate contains no certificate in PEM; run sallyport directory set --ca-certificate FILE"
        )
        return
    for each in authorities:
        yield from of_time(f"{name}: caCertificate {common_name(each)}", each.not_valid_before_utc, each, present())


def check_configuration(examination: Examination) -> Iterator[Finding]:
    """Check that the folder of the setting `apply` was applied."""
    if examination.settings.apply is None:
        return
    state = examination.line.row("configuration.state")
    if state["problem"]:
        yield problem(
            f"the folder {state['folder']} is not applied: {state['problem']}; correct the files: "
            f"sallyport apply {state['folder']} --diff shows what would change"
        )
    elif state["at"]:
        yield ok(f"the folder {state['folder']} was applied at {state['at']}")
    differs = state["differs"]
    if isinstance(differs, list) and differs:
        more = f" and {len(differs) - LISTED} more" if len(differs) > LISTED else ""
        yield warning(
            f"objects differ from the files: {', '.join(map(str, differs[:LISTED]))}{more}; an apply undoes this: "
            f"sallyport apply {state['folder']} --diff shows what to write into the files"
        )


def check_nodes(examination: Examination) -> Iterator[Finding]:
    """Check that each node is alive, that all nodes have the same version, and that one node holds the lease for the
    periodic tasks."""
    nodes = examination.rows("node.list")
    alive = [each for each in nodes if each["alive"]]
    leaders = [str(each["name"]) for each in alive if each["leads"]]
    yield ok(f"{counted(len(alive), 'node')} alive{f', {leaders[0]} does the periodic work' if leaders else ''}")
    for each in nodes:
        if not each["alive"]:
            yield warning(
                f"{each['name']} is {each['state']}: start it, or remove it from the list: "
                f"sallyport node forget {each['name']}"
            )
    versions = {str(each["version"]) for each in alive}
    if len(versions) > 1:
        each_version = ", ".join(f"{each['name']} has {each['version']}" for each in alive)
        yield warning(
            f"the nodes have different versions: {each_version}; set all to one version: see sallyport node list"
        )
    if alive and not leaders:
        yield problem(
            "no node holds the lease of the periodic work: no schedule, outlet or retention runs; look for "
            "heartbeat_failed in the log of each node, and restart one"
        )
