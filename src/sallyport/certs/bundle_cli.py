"""The options of `sallyport cert issue` and `sallyport cert renew` for a person's device. With these options, the
commands also write the certificate in files for the device."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from sallyport.base.errors import StartError
from sallyport.base.wire import Row
from sallyport.certs.authority import common_name, host_names
from sallyport.certs.bundle import MAX_SSID, Identity, Network, as_pkcs12, as_profile, new_password
from sallyport.certs.expiry import certificates_of
from sallyport.certs.folder import CertificateFolder, read_certificates, read_key
from sallyport.host import disk
from sallyport.host.owner import as_owner
from sallyport.settings.settings import Settings
from sallyport.shell.command import CommandLine

CommandT = TypeVar("CommandT", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options for a person's device that were given to `cert issue` or `cert renew`."""

    p12: Path | None
    mobileconfig: Path | None
    ssid: str
    vpn_server: str
    vpn_id: str
    server_names: Sequence[str]
    legacy: bool

    @property
    def files(self) -> list[Path]:
        """The files to write."""
        return [path for path in (self.p12, self.mobileconfig) if path is not None]


def bundled(work: CommandT) -> CommandT:
    """Add the options for a person's device to a command."""
    file = click.Path(dir_okay=False, path_type=Path)
    options = [
        click.option("--p12", type=file, metavar="FILE", help="Also write the certificate and key as PKCS#12."),
        click.option("--mobileconfig", type=file, metavar="FILE", help="Also write a profile for Apple devices."),
        click.option("--ssid", default="", help="With --mobileconfig: name of the Wi-Fi network to join by EAP-TLS."),
        click.option(
            "--vpn-server", default="", metavar="HOST", help="With --mobileconfig: host of the IKEv2 gateway."
        ),
        click.option(
            "--vpn-id",
            default="",
            metavar="ID",
            help="IKE identity of the gateway; default: the host in --vpn-server.",
        ),
        click.option(
            "--server-name",
            "server_names",
            multiple=True,
            metavar="NAME",
            help="RADIUS server that the Wi-Fi trusts; default: the names in the server's certificate.",
        ),
        click.option(
            "--legacy",
            is_flag=True,
            help="Encrypt with 3DES, for macOS 12, iOS 15, Android 12, Windows Server 2016 and older.",
        ),
    ]
    for option in reversed(options):
        work = option(work)
    return work


def wanted(given: dict[str, object]) -> Wanted:
    """Return the options for a person's device. given: the values of these options, by name.

    Raises UsageError if an option requires another option, or has a wrong value.
    """
    found = Wanted(**given)  # type: ignore[arg-type]  # click gives these fields
    for option, value in (("--ssid", found.ssid), ("--vpn-server", found.vpn_server)):
        if value and found.mobileconfig is None:
            raise click.UsageError(f"{option} requires --mobileconfig")
    if found.vpn_id and not found.vpn_server:
        raise click.UsageError("--vpn-id requires --vpn-server")
    if found.server_names and not found.ssid:
        raise click.UsageError("--server-name requires --ssid")
    if found.legacy and not found.files:
        raise click.UsageError("--legacy requires --p12 or --mobileconfig")
    if len(found.ssid.encode()) > MAX_SSID:
        raise click.BadParameter(f"must have at most {MAX_SSID} octets", param_hint="--ssid")
    return found


@contextmanager
def reserved(files: Sequence[Path]) -> Iterator[None]:
    """Create empty files, which only their owner may read. If the code in the context fails, remove the files.

    The files are created before the certificate is issued. Otherwise a file that cannot be written would be noticed too
    late. Raises StartError if a file exists already or cannot be created.
    """
    made: list[Path] = []
    try:
        for path in files:
            try:
                with as_owner(path.parent):
                    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, disk.PRIVATE))
            except FileExistsError:
                raise StartError(
                    f"{path} exists and is not overwritten: give another file, or remove this one"
                ) from None
            except OSError as error:
                raise StartError(f"{path}: {error.strerror}") from error
            made.append(path)
        yield
    except BaseException:
        for path in made:
            with suppress(OSError):
                path.unlink()
        raise


def write(line: CommandLine, made: Row, given: Wanted, *texts: str) -> None:
    """Write the files that the options name. Print the texts, the paths of the files and their password; with --json,
    `made` with them. Raises StartError.

    made: the new certificate, with its path in PEM. The key of the certificate is in the same folder.
    """
    certificate = Path(str(made["path"]))
    files: dict[str, str] = {"p12": "", "mobileconfig": "", "password": ""}
    try:
        if given.files:
            files |= _written(line, certificate, given)
    finally:  # the certificate exists also if a file cannot be written
        answer: Row = {**made, "key": str(certificate.with_suffix(".key")), **files}
        line.print_answer(answer, "\n".join(filter(None, (*texts, *files.values()))))
    if given.files:
        line.note(
            "the last line is the password of the file: it is shown only now; do not send it together with the file"
        )


def _written(line: CommandLine, certificate: Path, given: Wanted) -> dict[str, str]:
    """Write the files, and return their paths and their password."""
    chain, settings = read_certificates(certificate), line.settings()
    identity = Identity(chain[0], read_key(certificate.with_suffix(".key")), chain[1])
    files, password = {}, new_password()
    if given.p12 is not None:
        disk.write(given.p12, as_pkcs12(identity, password, legacy=given.legacy))
        files["p12"] = str(given.p12)
    if given.mobileconfig is not None:
        network = _network(line, settings, given)
        disk.write(given.mobileconfig, as_profile(identity, password, network, legacy=given.legacy))
        files["mobileconfig"] = str(given.mobileconfig)
    return {**files, "password": password}


def _network(line: CommandLine, settings: Settings, given: Wanted) -> Network:
    """Return the networks of a profile, with the names and the authority of the server's certificate."""
    folder = CertificateFolder(settings.data_dir)
    files = certificates_of(settings).server()
    if files is None:
        raise StartError("the server has no certificate; to create one: sallyport cert init")
    server, *chain = read_certificates(files.certificate_file)
    roots = [each for each in chain if each.subject == each.issuer]
    if settings.eap_certificate is None:
        roots = read_certificates(folder.ca)[:1]
    elif not roots:
        line.note("another authority has signed the server's certificate: install that authority on the device")
    names = given.server_names or tuple(dict.fromkeys([common_name(server), *host_names(server)]))
    return Network(given.ssid, given.vpn_server, given.vpn_id, [name for name in names if name], roots)
