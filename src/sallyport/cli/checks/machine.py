"""Checks of the host: settings, files and their modes, the disk, ports, and the clock."""

import errno
import os
import shlex
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from sallyport.base.clock import is_synchronized
from sallyport.base.errors import ConfigError, Locked
from sallyport.certs.authority import host_names
from sallyport.certs.folder import read_certificates
from sallyport.cli.checks.model import Examination, Finding, ok, problem, warning
from sallyport.cli.connection import LOCKED
from sallyport.host import disk
from sallyport.host.owner import as_owner, user_name
from sallyport.settings.listening import bound, cannot_listen, has_family, holder
from sallyport.settings.master_key import KEY_FILE, given_keys
from sallyport.settings.settings import Settings, unknown_environment
from sallyport.settings.values import MASTER_KEY, Address
from sallyport.store.vault import parse_keys

LISTENERS = {
    "radius_auth_bind": "RADIUS authentication",
    "radius_acct_bind": "RADIUS accounting",
    "radsec_bind": "RadSec",
    "http_bind": "HTTP",
    "metrics_bind": "metrics",
    "people_bind": "pages of people",
}
MADE = 1_767_225_600  # 2026-01-01, in Unix time; a correct clock shows a later time
MAX_PROXIES = 256
"""Number of addresses from which a network of proxies is too wide: a /24, or a /120."""
NEW = "the first start creates it"


def check_settings(examination: Examination) -> Iterator[Finding]:
    """Check that the settings can be read, and that each SALLYPORT_ environment variable is a setting."""
    yield ok(f"{examination.line.connection.file or 'defaults'} and the environment")
    for name in unknown_environment(examination.environ):
        yield warning(
            f"the environment variable {name} is not a setting; unset it, or see the settings: sallyport serve --help"
        )


def check_directory(examination: Examination) -> Iterator[Finding]:
    """Check that the data directory exists, and that only its owner has access."""
    path = examination.settings.data_dir
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISDIR(status.st_mode) or not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield problem(
            f"{path} is not a directory that user {user_name(os.geteuid())} can write to; create it, or set data_dir"
        )
    elif mode & 0o077:
        yield warning(f"{path} has mode {mode:04o}: other users have access; chmod 700")
    else:
        yield ok(f"{path}, mode {mode:04o}, user {user_name(status.st_uid)}")


def check_files(examination: Examination) -> Iterator[Finding]:
    """Check that the service can read the files of the data directory and the files that settings name. The service
    runs as the owner of the data directory."""
    settings, data_dir = examination.settings, examination.settings.data_dir
    owner = user_name(data_dir.stat().st_uid)
    reader = owner if os.geteuid() == 0 else user_name(os.geteuid())
    named = [examination.line.connection.file, settings.tls_certificate, settings.tls_key, settings.dictionaries]
    named += [settings.eap_certificate, settings.eap_key, settings.eap_ca]
    named += [settings.profile_certificate, settings.profile_key, settings.smtp_password_file]
    faults: list[OSError] = []
    with as_owner(data_dir, reads_all=False):
        for path in filter(None, named):
            faults += _fault(path)
        for directory, _, names in os.walk(data_dir, onerror=faults.append):
            found = [each for name in names for each in _fault(Path(directory, name))]
            faults += [
                each for each in found if not isinstance(each, FileNotFoundError)
            ]  # the file was removed after os.walk had listed it
    for error in faults:
        remedy = f"; chown {owner} {shlex.quote(str(error.filename))}" if isinstance(error, PermissionError) else ""
        yield problem(f"user {reader} cannot read {error.filename}: {error.strerror}{remedy}")
    if not faults:
        yield ok(f"user {reader} can read all files")


def _fault(path: Path) -> list[OSError]:
    """Return a list with the error if a file cannot be read. Return an empty list if the file can be read. A socket
    counts as readable."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return [] if error.errno == errno.ENXIO else [error]
    return []


def check_service(examination: Examination) -> Iterator[Finding]:
    """Check that the service runs and answers. If it does not run, check that no process holds the lock of the data
    directory."""
    try:
        process_id = examination.process_id
    except Locked as error:  # this is raised after a wait, so the process does not respond
        yield problem(f"{error}; {LOCKED}")
        return
    yield ok("does not run" if process_id is None else f"runs as process {process_id}")


def check_key(examination: Examination) -> Iterator[Finding]:
    """Check that the master key exists and is valid, and that only its owner can read it."""
    settings = examination.settings
    path = settings.data_dir / KEY_FILE
    try:
        given = given_keys(examination.environ, settings.data_dir)
    except ConfigError as error:
        yield problem(f"{error}; set one of the variables, or restore the file")
        return
    if given is not None:
        yield _keys(*given) or ok(f"from {given[0]}")
    elif path.exists():
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            yield problem(f"{path} has mode {mode:04o}: other users can read it; chmod 600")
        else:
            fine = ok(f"{path}, mode {mode:04o}; no backup contains it")
            yield _keys(str(path), path.read_text(encoding="ascii", errors="replace")) or fine
    elif settings.database_path.exists() and examination.process_id is None:
        yield problem(
            f"{path} is missing: without it, no secret in the database can be decrypted; restore the file"
            f" from its backup, or set {MASTER_KEY}"
        )
    elif examination.process_id is None:
        yield ok(NEW)
    else:
        yield warning(
            f"{path} is missing: unless the service uses {MASTER_KEY}, the next start needs it; restore the file"
        )


def _keys(where: str, text: str) -> Finding | None:
    """Return a finding if a text contains a malformed master key, or more than one master key. Otherwise return None.

    where: the name of the file or variable that contains the text.
    """
    try:
        keys = parse_keys(text)
    except ConfigError as error:
        return problem(f"{where}: {error}; restore it from its backup")
    if len(keys) > 1:
        return warning(
            f"{where} contains several keys: a rotation is running or was interrupted; sallyport db rotate-key "
            "completes it"
        )
    return None


def check_disk(examination: Examination) -> Iterator[Finding]:
    """Check that the database's disk has free space, and that the reserve file exists. The service frees the space of
    the reserve file when the disk is full."""
    settings, database = examination.settings, examination.settings.database_path.absolute()
    free, reserve = disk.free(database.parent), settings.disk_reserve_mib << 20
    text = f"{free >> 20} MiB are free"
    if free < max(reserve, 1 << 20):
        yield problem(f"{text}: on a full disk, the service does not answer; free some space")
    else:
        yield warning(f"{text}: free some space, or move the data directory") if free < disk.LOW else ok(text)
    held = database.with_name(database.name + ".reserve").exists()
    if reserve and examination.process_id is not None and not held and not settings.database_url:
        yield warning(
            f"the reserve file of {settings.disk_reserve_mib} MiB is missing: the disk was or is full; free some "
            "space, "
            "and restart the service"
        )


def check_ports(examination: Examination) -> Iterator[Finding]:
    """Check that the running service has bound each address of the settings. Without a service, check that each address
    is free."""
    for setting, address, kind in examination.settings.addresses():
        yield _port(examination, setting, address, kind)


def _port(examination: Examination, setting: str, address: Address, kind: socket.SocketKind) -> Finding:
    name = f"{LISTENERS[setting]} on {address}"
    if not has_family(address):
        return warning(f"{name}: this machine has no IPv6; set another {setting}, or enable IPv6")
    if address.port == 0:
        return ok(f"{name}: the system chooses a port at each start")
    error: OSError | None = None
    try:
        bound(address, kind).close()
    except OSError as prevented:
        error = prevented
    held = None if error is None else holder(address, kind)
    if examination.process_id is None:
        return ok(f"{name}: free") if error is None else problem(str(cannot_listen(setting, address, kind, error)))
    if held is not None and held.process_id in {None, examination.process_id}:
        return ok(f"{name}: bound by the service")
    found = "no program listens there" if error is None else f"used by {held or 'another program'}"
    return problem(f"{name}: {found}; the service runs with older settings; restart it")


def check_clock(examination: Examination) -> Iterator[Finding]:
    """Check that the clock is plausible and synchronized. Events and one-time codes need a correct clock."""
    now = time.time()
    text = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    yield ok(text) if now > MADE else problem(f"{text}: the clock is wrong; set it (chrony)")
    if is_synchronized() is False:
        yield warning("the clock is not synchronized, but one-time codes need it: install chrony, or systemd-timesyncd")


def check_ipv6(examination: Examination) -> Iterator[Finding]:
    """Check that the machine has IPv6 if the settings bind an IPv6 address."""
    settings = examination.settings
    wanted = [each for each in (*settings.radius_auth_bind, *settings.radius_acct_bind) if ":" in each.host]
    if has_family(Address("::", 0)):
        yield ok("available") if wanted else ok("available; RADIUS listens on IPv4 only")
    else:
        yield (
            warning("this machine has no IPv6, so RADIUS cannot use it; enable IPv6, or set radius_auth_bind to IPv4")
            if wanted
            else ok("not available, and no setting needs it")
        )


def check_people(examination: Examination) -> Iterator[Finding]:
    """Check that the pages of people get the addresses of browsers, and are reached over TLS."""
    yield from of_people(examination.settings)


def of_people(settings: Settings) -> Iterator[Finding]:
    """Yield the findings about the setting `people_bind`."""
    if settings.people_bind is None:
        yield ok("no pages: people_bind is not set")
        return
    weak = list(_weaknesses(settings))
    yield from weak or [ok(f"{settings.public_url}/mfa and {settings.public_url}/me")]


def _weaknesses(settings: Settings) -> Iterator[Finding]:
    if settings.tls_certificate is None and not settings.trusted_proxies:
        yield warning(
            "people_bind has no TLS, so people need a proxy with TLS, but trusted_proxies names none: all people seem "
            "to have the address of the proxy; set trusted_proxies, or tls_certificate and tls_key"
        )
    if settings.tls_certificate is not None and not settings.trusted_proxies:
        yield from _of_name(settings.tls_certificate, urlsplit(settings.public_url).hostname or "")
    wide = [each for each in settings.trusted_proxies if each.num_addresses > MAX_PROXIES]
    if wide:
        yield warning(
            f"trusted_proxies has {', '.join(map(str, wide))}: each host of this network can claim any address for a "
            "browser, and so meet the binding to an address; set it to the proxies alone"
        )


def _of_name(path: Path, host: str) -> Iterator[Finding]:
    """Check that a certificate has the host of `public_url`. Browsers allow no passkeys otherwise."""
    names = host_names(read_certificates(path)[0])
    wildcard = f"*.{host.partition('.')[2]}"
    if not {host, wildcard} & {each.casefold() for each in names}:
        yield warning(
            f"tls_certificate {path} is for {', '.join(names) or 'no name'}, not for {host} of public_url: browsers "
            "warn people, and allow no passkeys; set a certificate for this name"
        )
