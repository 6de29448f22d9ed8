"""What needs attention, for the home page: facts of the tenant, and for an installation administrator also facts of the
installation."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography import x509

from sallyport.areas.clients.client import State
from sallyport.areas.directory.imports.bodies import ended_readings
from sallyport.areas.directory.schedules.bodies import is_overdue, is_too_old
from sallyport.areas.domains.domain import Domain, Fallback, Mode
from sallyport.areas.events.hours import HourOfLogins
from sallyport.areas.login.listen.causes import UNKNOWN
from sallyport.areas.login.login import Reason
from sallyport.base.clock import from_us
from sallyport.base.errors import StoreError
from sallyport.base.text import counted
from sallyport.base.wire import Row
from sallyport.console.pages import senders
from sallyport.console.pages.directories.finding import first_directories
from sallyport.console.pages.installation import SOON
from sallyport.console.pages.reading import joined, of
from sallyport.console.pages.recovery import FAILING, failed_until
from sallyport.console.visit import Visit, address
from sallyport.host import disk
from sallyport.shell.command import entries

MAX_DOMAINS: Final = 20
NAMED: Final = 3
"""Number of RADIUS clients in a state whose names Home shows."""
MAX_DIRECTORIES: Final = 100
MAX_NAME_LENGTH: Final = 40
"""Maximum length of a NAS-Identifier on Home, in characters."""
RECENT: Final = 2
"""Number of hours, up to now, whose logins show a failing provider. The present hour may have just begun."""
STATUS: Final = "/api/v1/getImportStatus"


@dataclass(frozen=True, slots=True)
class Concern:
    """Something that needs attention. path: the address of the page that helps. link: the text of the link to this
    page. If there is no such page, both are empty. is_bad: whether logins fail now because of it. since: the time since
    which it is so, or empty. last: if it is over, the last time at which it was so; otherwise empty."""

    text: str
    path: str = ""
    link: str = ""
    is_bad: bool = False
    since: str = ""
    last: str = ""


async def concerns(visit: Visit, day: Sequence[HourOfLogins]) -> list[Concern]:
    """Return what needs attention: first what makes logins fail now, then senders without an answer, silent clients,
    certificates, providers and imports, unsigned clients, lock-outs, disk.

    day: the logins of the last day by hour. Raises Refused, StoreError.
    """
    domains, installation = visit.domains()[:MAX_DOMAINS], visit.person.is_installation
    found = [each async for each in _setup(visit)]
    found += await _senders(visit) if installation else []
    found += await _silent(visit)
    directories = [(domain, await first_directories(visit, domain, MAX_DIRECTORIES)) for domain in domains]
    found += [each async for each in _certificates(visit, directories)]
    for domain in domains:
        found += [each async for each in _provider(visit, domain)]
    found += [each async for each in _failing(visit, domains, day)]
    for domain, each in directories:
        found += await _imports(visit, domain, each)
    found += await _unsigned(visit)
    for domain in domains:
        found += await _locked(visit, domain)
    found += _disk(visit) if installation else []
    return sorted(found, key=lambda concern: (bool(concern.last), not concern.is_bad))


async def _setup(visit: Visit) -> AsyncIterator[Concern]:
    if not visit.domains():
        yield Concern(
            "The tenant has no domain yet, so no login can be decided.", "/domains", "Open the domains", is_bad=True
        )
    clients = await visit.call("/network_device/ListClients", {"pageSize": 1})
    if not clients["totalCount"]:
        yield Concern(
            "No RADIUS client is registered, so no device gets an answer.", "/clients", "Open the clients", is_bad=True
        )


# --- RADIUS clients ---------------------------------------------------------------------------------------------------


async def _clients(visit: Visit, state: State) -> tuple[int, str]:
    """Return the number of the clients in a state, and the names of the first ones. If the search takes too long, no
    client is returned, so that the other facts are shown."""
    try:
        found = await visit.call("/network_device/ClientActivity", {"state": state, "pageSize": NAMED})
    except StoreError:
        return 0, ""
    total = int(str(found["totalCount"]))
    return total, joined([each["name"] for each in entries(found["clients"])], total=total)


async def _silent(visit: Visit) -> list[Concern]:
    """Return the clients that have sent requests before, but none for a day."""
    total, names = await _clients(visit, State.SILENT)
    if not total:
        return []
    text = "A RADIUS client has" if total == 1 else f"{total} RADIUS clients have"
    return [Concern(f"{text} sent no request for a day: {names}.", "/clients", "Show the clients")]


async def _unsigned(visit: Visit) -> list[Concern]:
    """Return the clients that have sent requests without Message-Authenticator in the last day."""
    total, names = await _clients(visit, State.UNSIGNED)
    if not total:
        return []
    who = "A RADIUS client sends" if total == 1 else f"{total} RADIUS clients send"
    text = f"{who} requests without Message-Authenticator, which can be forged (CVE-2024-3596): {names}."
    return [Concern(text, "/clients?column=name&column=address&column=lastUnsigned", "Show the clients")]


async def _senders(visit: Visit) -> list[Concern]:
    found = await senders.everyone(visit)
    unknown = [each for each in found if each["reason"] == UNKNOWN]
    # a sender has a row for each cause
    refused = dict.fromkeys(_sender_name(each) for each in found if each["reason"] != UNKNOWN)
    names = joined([_sender_name(each) for each in unknown])
    concerns = []
    if len(unknown) == 1:
        text = f"An address gets no answer, because it is no RADIUS client: {names}."
        register = address(senders.NEW, [("address", str(unknown[0]["address"]))])
        concerns.append(Concern(text, register, "Register it"))
    elif unknown:
        text = f"{len(unknown)} addresses get no answer, because they are no RADIUS clients: {names}."
        concerns.append(Concern(text, "/senders", "Show the addresses"))
    if refused:
        text = f"Packets from {joined(list(refused))} are refused."
        concerns.append(Concern(text, "/senders", "Show the causes"))
    return concerns


def _sender_name(sender: Row) -> str:
    name = str(sender.get("nas_identifier") or "")[:MAX_NAME_LENGTH]
    return f"{sender['address']} ({name})" if name else str(sender["address"])


# --- certificates -----------------------------------------------------------------------------------------------------


async def _certificates(visit: Visit, directories: Sequence[tuple[Domain, Sequence[Row]]]) -> AsyncIterator[Concern]:
    """Yield the certificates that expire soon: those of the tenant's directories, the server certificates of its
    domains, and for an installation administrator those of the service and of its clients."""
    for domain, each in ((domain, each) for domain, found in directories for each in found):
        days = _days_of(each, visit.services.clock())
        if days is not None and days < SOON:
            name = f"The authority's certificate of the directory {each['directoryName']} in {domain.name}"
            yield Concern(f"{name} {_expires(days)}.", of("/directories", domain), "Show the directory", days < 0)
    for domain, _ in directories:
        listed = await visit.call("/ad/ListServerCertificates", domain=domain.id)
        for each in entries(listed["certificates"]):
            days = (datetime.fromisoformat(str(each["expires"])) - from_us(visit.services.clock())).days
            name = f"The server certificate of {each['realm'] or domain.name}"
            if not each["usable"]:
                text = f"{name} is not in use, because its key cannot be read. Set it again."
                yield Concern(text, of("/server-certificates", domain), "Show it", is_bad=True)
            elif days < SOON:
                yield Concern(f"{name} {_expires(days)}.", of("/server-certificates", domain), "Show it", days < 0)
    for each in entries(await visit.command("cert.list")) if visit.person.is_installation else ():
        left = each["days"]
        if each["state"] != "revoked" and isinstance(left, int) and left < SOON:
            text = f"The certificate of {each['name']} {_expires(left)}."
            yield Concern(text, "/certificates", "Show the certificates", each["state"] == "expired")


def _days_of(directory: Row, now: int) -> int | None:
    """Return the days until the first certificate of a directory's authorities expires; negative after the expiry.
    Return None if there is no certificate."""
    settings = directory["settings"]
    pem = settings.get("caCertificate") if isinstance(settings, dict) else None
    try:
        found = x509.load_pem_x509_certificates(str(pem).encode()) if pem else []
    except ValueError:
        return None
    return min(((each.not_valid_after_utc - from_us(now)).days for each in found), default=None)


def _expires(days: int) -> str:
    if days < 0:
        return "has expired"
    return f"expires in {counted(days, 'day')}" if days else "expires within a day"


# --- providers and imports --------------------------------------------------------------------------------------------


async def _provider(visit: Visit, domain: Domain) -> AsyncIterator[Concern]:
    """Yield that a domain has no default provider, and each provider that failed when it was last asked. The service
    asks a provider only at logins, so this is the last known state."""
    listed = entries((await visit.call("/ad/ListMFAProviders", domain=domain.id))["providers"])
    if not any(each["isDefault"] for each in listed):
        enforces = domain.mode == Mode.ENFORCE
        text = "enforces, but has no MFA provider" if enforces else "has no MFA provider yet"
        yield Concern(f"The domain {domain.name} {text}.", f"/domains/{domain.id}", "Open the domain", enforces)
    for found in (each for each in listed if each["failsSince"]):
        text = f"The MFA provider {found['provider']} of {domain.name} fails: {found['lastError']}."
        since = str(found["failsSince"])
        yield Concern(text, f"/domains/{domain.id}", "Open the domain", is_bad=True, since=since)


async def _failing(visit: Visit, domains: Sequence[Domain], day: Sequence[HourOfLogins]) -> AsyncIterator[Concern]:
    """Yield the reasons for which a provider or a first factor has not decided logins of the last hours. A reason that
    is over is not bad."""
    counts = [count for hour in day[-RECENT:] for count in hour.counts or ()]
    for domain in domains:
        for reason in sorted({each.reason for each in counts if each.domain_id == domain.id} & FAILING):
            logins = sum(each.logins for each in counts if (each.domain_id, each.reason) == (domain.id, reason))
            path = address("/logins", [("domain", str(domain.id)), ("reason", reason)])
            last = await failed_until(visit, domain, Reason(reason))
            text = f"{counted(logins, 'login')} of {domain.name} in the last hours: {reason}."
            yield Concern(text, path, "Show the logins", is_bad=not last, last=last)


async def _imports(visit: Visit, domain: Domain, directories: Sequence[Row]) -> list[Concern]:
    """Return the directories whose last import has failed, whose import is overdue, or whose data are too old."""
    if not directories:
        return []
    wanted: list[Row] = [{"DirectoryName": each["directoryName"]} for each in directories]
    jobs = entries((await visit.call(STATUS, wanted, domain=domain.id))["jobs"])
    failed = []
    for each in directories:
        last = ended_readings(job for job in jobs if job["directoryName"] == each["directoryName"])[:1]
        if last and last[0]["state"] == "FAILED":
            failed.append(
                f"The last import of {each['directoryName']} in {domain.name} has failed: {last[0]['message']}."
            )
    schedules = entries((await visit.call("/api/v1/directory/listSchedules", domain=domain.id))["schedules"])
    late = [each["directoryName"] for each in schedules if is_overdue(each, visit.services.clock())]
    failed += [f"The import of {name} in {domain.name} is overdue." for name in late]
    old = [
        Concern(
            f"The data of {each['directoryName']} in {domain.name} are too old for logins by certificate."
            if each["readAt"]
            else f"{each['directoryName']} in {domain.name} was never read completely.",
            of("/directories", domain),
            "Show the directories",
            is_bad=domain.stale_directory is not Fallback.ALLOW,
            since=str(each["readAt"]),
        )
        for each in directories
        if is_too_old(each, domain.directory_max_age_h, visit.services.clock())
    ]
    return [*old, *(Concern(text, of("/directories", domain), "Show the imports") for text in failed)]


# --- lock-outs and disk -----------------------------------------------------------------------------------------------


async def _locked(visit: Visit, domain: Domain) -> list[Concern]:
    locked = (await visit.call("/ad/ListLockouts", {"pageSize": 1}, domain=domain.id))["totalCount"]
    paused = (await visit.call("/ad/ListPromptPauses", {"pageSize": 1}, domain=domain.id))["totalCount"]
    found = list[Concern]()
    if locked:
        who = counted(locked, f"user or station of {domain.name} is", f"users or stations of {domain.name} are")
        found.append(Concern(f"{who} locked out after failures.", of("/lockouts", domain), "Show the lock-outs"))
    if paused:
        who = counted(paused, f"user of {domain.name} gets", f"users of {domain.name} get")
        text = f"{who} no prompt now, after “not me” or without answers."
        found.append(Concern(text, of("/prompt-pauses", domain), "Show the paused prompts"))
    return found


def _disk(visit: Visit) -> list[Concern]:
    """Return whether the disk of this node's data directory has little free space."""
    settings = visit.services.settings
    try:
        free = disk.free(settings.database_path.parent)
    except OSError as error:
        return [Concern(f"The disk of the data directory cannot be read: {error.strerror}.", is_bad=True)]
    return of_disk(free, settings.disk_reserve_mib << 20, settings.node)


def of_disk(free: int, reserve: int, node: str) -> list[Concern]:
    """Return the concern about a disk with little free space. free: the free space, in octets. reserve: the space that
    the service reserves for a full disk, in octets. node: the name of the node with the disk."""
    if free >= disk.LOW:
        return []
    text = f"{free >> 20} MiB are free on the disk of {node}. On a full disk, the service does not answer."
    return [Concern(text, is_bad=free < reserve)]
