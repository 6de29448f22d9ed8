"""`sallyport wallet`: hold credentials and answer login prompts from a terminal."""

import time
from pathlib import Path

import click

from sallyport.areas.did.crypto.encoding import CURVES
from sallyport.areas.did.holder.wallet import (
    DEFAULT,
    NoAnswer,
    OpenRequest,
    Remote,
    WalletFile,
    connected,
    new_key,
    read,
    write,
)
from sallyport.areas.did.wallets.cli import assign, list_, register, reset
from sallyport.base.errors import NotFound, SallyportError, StartError
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.options import Group

COLUMNS = ("credentialId", "credentialName", "issuerName", "status", "createdAt")

in_file = click.option(
    "--file", "path", type=click.Path(dir_okay=False, path_type=Path), default=DEFAULT, help="The wallet's file."
)


@click.group(cls=Group, first=("register", "assign", "list", "init", "poll", "accept", "present"))
def wallet() -> None:
    """Wallets. An admin runs register, assign, list and reset. A holder runs the other commands, and needs only the
    service's HTTP API and a file with the wallet's key."""


for each in (register, assign, list_, reset):
    wallet.add_command(each)


@wallet.command()
@click.option("--service", required=True, help="The service's address, such as https://sallyport.example.com.")
@click.option("--email", required=True, help="The mail address that the wallet was registered with.")
@click.option("--wallet-id", type=int, required=True, help="The walletId of the registration.")
@click.option("--json", "as_json", is_flag=True, help="Print the DID and its publicKeyJwk as JSON.")
@click.option("--did", default="", help="DID whose key the service keeps. Without --did, the wallet generates a key.")
@click.option(
    "--curve", type=click.Choice(list(CURVES)), default="Ed25519", help="Curve of the key that the wallet generates."
)
@in_file
@click.pass_obj
def init(
    line: CommandLine,
    *,
    service: str,
    email: str,
    wallet_id: int,
    as_json: bool,
    did: str,
    curve: str,
    path: Path,
) -> None:
    """Create the wallet's file, and print the wallet's DID (run by the holder). Without --did, the file gets a new key,
    and an admin then registers the new DID. Standard input has two lines: the walletKey, and then the token."""
    wallet_key = line.read_secret("walletKey", confirm=False).decode(errors="replace").strip()
    token = line.read_secret("Token", confirm=False).decode(errors="replace").strip()
    if not wallet_key or not token:
        raise StartError("give the walletKey and the token of the registration on standard input, one on each line")
    made, key = (did, "") if did else new_key(curve)
    held = WalletFile(
        service=service.rstrip("/"),
        email=email,
        wallet_id=wallet_id,
        wallet_key=wallet_key,
        token=token,
        did=made,
        curve=curve if key else "",
        key=key,
    )
    write(path, held)
    signer = held.signer()
    if as_json:
        line.print_json({"did": held.did, "publicKeyJwk": None if signer is None else signer.key.public.jwk})
    else:
        line.print(held.did)
    line.note(f"{path} is the wallet: keep it secret, because every reader can log in as you")
    if signer is not None:
        line.note(
            "an admin registers the DID: sallyport wallet register NAME --domain D --key FILE (FILE: from init --json)"
        )


@wallet.command()
@in_file
@click.option("--json", "form", flag_value="json", help="Print JSON that includes the tokens.")
@click.pass_obj
def poll(line: CommandLine, *, path: Path, form: Form | None) -> None:
    """Print the credentials that are assigned to the wallet (run by the holder)."""
    with connected(read(path)) as remote:
        line.print_rows(remote.credentials(), COLUMNS, form)


@wallet.command()
@click.argument("credential", type=int)
@in_file
@click.pass_obj
def accept(line: CommandLine, *, credential: int, path: Path) -> None:
    """Accept the credential with this credentialId (run by the holder)."""
    with connected(read(path)) as remote:
        line.note(remote.acknowledge(credential, accept=True))


@wallet.command()
@click.argument("credential", type=int)
@in_file
@click.pass_obj
def ignore(line: CommandLine, *, credential: int, path: Path) -> None:
    """Ignore the credential with this credentialId, so that it cannot be used for logins (run by the holder)."""
    with connected(read(path)) as remote:
        line.note(remote.acknowledge(credential, accept=False))


@wallet.command()
@click.option("--watch", is_flag=True, help="Continue with the next request until interrupted.")
@click.option("--yes", "agreed", is_flag=True, help="Present without asking.")
@click.option("--decline", "declined", is_flag=True, help="Decline without asking.")
@click.option("--every", type=click.FloatRange(0.2, 60.0), default=2.0, help="Seconds between two polls with --watch.")
@in_file
@click.pass_obj
def present(line: CommandLine, *, watch: bool, agreed: bool, declined: bool, every: float, path: Path) -> None:
    """Answer the oldest open presentation request, such as a login prompt (run by the holder)."""
    if agreed and declined:
        raise click.UsageError("--yes and --decline exclude each other")
    held = read(path)
    with connected(held) as remote:
        while True:
            request = _polled(line, remote, watch=watch)
            if request is not None:
                _answer(line, remote, request, agreed=agreed, declined=declined, watch=watch)
            elif not watch:
                raise NotFound("no presentation request is open")
            if not watch:
                return
            time.sleep(every if request is None else 0.0)


def _polled(line: CommandLine, remote: Remote, *, watch: bool) -> OpenRequest | None:
    try:
        return remote.poll()
    except NoAnswer as error:
        if not watch:
            raise
        line.note(f"waiting: {error}")
        return None


def _answer(
    line: CommandLine, remote: Remote, request: OpenRequest, *, agreed: bool, declined: bool, watch: bool
) -> None:
    line.note(
        f"{request.purpose or 'the service asks for a presentation'}"
        + (f" [{request.endpoint}]" * bool(request.endpoint))
    )
    line.note(f"verifier: {request.verifier}")
    if request.pending > 1:  # a request may come from an attacker who knows the password
        line.note(f"{request.pending} requests are open: answer only a request that you caused yourself")
    yes = agreed or (not declined and click.confirm("Present?", err=True))
    try:
        line.note(remote.present(request) if yes else remote.decline(request))
    except SallyportError as error:
        if not watch:
            raise
        line.note(f"not done: {error}")
        time.sleep(1.0)
