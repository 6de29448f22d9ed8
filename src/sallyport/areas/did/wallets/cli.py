"""`sallyport wallet register`, `reset`, `assign` and `list`: the commands of admins for wallets.

A person's wallet needs two registrations. The first registration returns the walletKey and the token. The holder enters
the walletKey and the token in `sallyport wallet init`. The second registration registers the wallet's DID. Either the
holder generates a key and gives its public part to the admin, or the service generates the key and keeps it encrypted
with the walletKey.
"""

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click

from sallyport.areas.did.holder.wallet import read
from sallyport.base.errors import NotFound, StartError
from sallyport.base.text import fold
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, domains, named
from sallyport.shell.fields import field_argument, field_option, pass_body
from sallyport.shell.options import as_json, in_domain, json_form

COLUMNS = ("walletId", "username", "emailAddress", "domain", "noOfcredential", "dids")
FILE_COLUMNS = ("service", "email", "walletId", "did", "key")
_MAX_SIZE = 64 << 10
_ID = click.IntRange(min=1)


@click.command()
@field_argument("username", "name", expose_value=True)
@in_domain
@field_option("emailAddress", "--email", help="E-mail address of a new wallet; leave it out for a registered wallet.")
@field_option("walletUrl", "--url", help="URL of the wallet, as information.")
@click.option(
    "--key",
    "key_file",
    metavar="FILE",
    help="Register the wallet's DID, from a file with the output of `wallet init --json`.",
)
@click.option(
    "--service-key", is_flag=True, help="Create the DID and its key in the service, sealed under the walletKey."
)
@field_option(
    "issuerId",
    "--issuer",
    "issuer",
    default="",
    expose_value=True,
    metavar="DID",
    help="Issuer that the DID belongs to.",
)
@as_json
@pass_body
def register(
    line: CommandLine,
    body: Row,
    *,
    name: str,
    domain: str,
    key_file: str | None,
    service_key: bool,
    issuer: str,
    as_json: bool,
) -> None:
    """Register a person's wallet, or the DID of a registered wallet (run by an admin). Prints the walletKey and the
    token of a new wallet, one on each line, and the DID."""
    if key_file is not None and service_key:
        raise click.UsageError("--key and --service-key exclude each other")
    email = body.get("emailAddress")
    if email is None and key_file is None and not service_key:
        raise click.UsageError(
            "--email is missing: give it for a new wallet, or --key or --service-key for the DID of a registered one"
        )
    key = _key(key_file) if key_file is not None else {}
    if email is None:
        wallet = _find(line, name, domain)
        made: Row = {"walletId": wallet["walletId"]}
    else:
        made = line.run("/api/v1/walletService/registerWalletUser", {"username": name, **body}, domain=domain)
    holder: Row = {"method": "key", **key, "walletUserId": made["walletId"], "issuerId": issuer, "name": name}
    try:
        if key or service_key:
            made["did"] = line.run("/api/v1/did/createHolderDid", holder, domain=domain)["id"]
    finally:  # print the walletKey even after an error: no other answer has it
        _print_wallet(line, made, as_json=as_json)
    if email is not None:
        _note_next_command(line, made, str(email), f"--did {made['did']}" if service_key else "" if key else "--json")
    if "did" in made:
        line.note(f"the DID of {name} is registered: credentials can be issued to it")
    else:
        words = f"{shlex.quote(name)} --domain {shlex.quote(domain)}"
        line.note(f"then an admin runs: sallyport wallet register {words} --key FILE (FILE: the output of init)")


@click.command()
@click.argument("name")
@in_domain
@as_json
@click.pass_obj
def reset(line: CommandLine, *, name: str, domain: str, as_json: bool) -> None:
    """Give a lost wallet a new walletKey and token, and print them (run by an admin). The former walletKey and token
    become invalid. Keys that the service kept for the wallet are lost."""
    wallet = _find(line, name, domain)
    made = line.run("/api/v1/walletService/resetWallet", {"walletId": wallet["walletId"]}, domain=domain)
    _print_wallet(line, made, as_json=as_json)
    _note_next_command(line, made, str(wallet["emailAddress"]), "--json")


@click.command()
@click.argument("name")
@in_domain
@field_option(
    "credentialId",
    "--credential",
    "credentials",
    type=_ID,
    multiple=True,
    expose_value=True,
    metavar="ID",
    help="A credential; repeatable.",
)
@click.option(
    "--user",
    "users",
    multiple=True,
    help="An endpoint user whose logins the wallet answers. Repeat --user for several users.",
)
@click.option("--replace", is_flag=True, help="Replace the wallets and credentials that the users have.")
@click.pass_obj
def assign(
    line: CommandLine, *, name: str, domain: str, credentials: tuple[int, ...], users: tuple[str, ...], replace: bool
) -> None:
    """Put credentials into a wallet, and assign the wallet and the credentials to endpoint users (run by an admin)."""
    if not credentials and not users:
        raise click.UsageError("--credential and --user are missing: give one or both")
    if replace and not users:
        raise click.UsageError("--replace needs --user")
    wallet = _find(line, name, domain)["walletId"]
    if not users:
        body: Row = {"walletId": wallet, "userId": wallet, "credentialId": list(credentials)}
        line.run("/api/v1/walletService/assignWalletUser", body, domain=domain)
    else:
        body = {
            "epmUserId": [_user_id(line, domain, each) for each in users],
            "platformUserNames": [wallet],
            "credentialId": list(credentials),
            "assignMultiple": not replace,
        }
        line.run("/api/v1/endpointUsers/updateUserWallet", body, domain=domain)
    what = [*(f"credential {each}" for each in credentials), *(f"user {each}" for each in users)]
    line.note(f"wallet {name} now has: {', '.join(what)}")


@click.command("list")
@click.option("--domain", help="Only this domain (name or domainId).")
@click.option("--search", default="", help="Part of a name or an e-mail address.")
@click.option("--limit", type=_ID, default=1000, show_default=True, help="Maximum number of rows.")
@click.option(
    "--file", "path", type=click.Path(dir_okay=False, path_type=Path), help="Show the content of this wallet's file."
)
@json_form
@click.pass_obj
def list_(
    line: CommandLine, *, domain: str | None, search: str, limit: int, path: Path | None, form: Form | None
) -> None:
    """List the registered wallets with their DIDs (run by an admin). With --file, show instead the content of a
    holder's wallet file, without the secrets in it."""
    if path is not None:
        if domain is not None or search:
            raise click.UsageError("--file cannot be combined with --domain or --search")
        held = read(path)
        key = held.curve if held.key else "kept by the service"
        shown: Row = {"service": held.service, "email": held.email, "walletId": held.wallet_id, "did": held.did}
        line.print_rows([{**shown, "key": key}], FILE_COLUMNS, form)
        return
    found = (each for one in domains(line, domain) for each in _wallets(line, one, search))
    line.print_rows(islice(found, limit), COLUMNS, form)
    if next(found, None) is not None:
        line.note(f"more than {limit} wallets match: use --search, or a larger --limit")


def _wallets(line: CommandLine, domain: Row, search: str) -> Iterator[Row]:
    number = str(domain["domainId"])
    dids = defaultdict[JSON, list[JSON]](list)
    for each in line.listed("/api/v1/did/DIDList", None, domain=number):
        dids[each["walletUserId"]].append(each["did"])
    for each in line.listed("/api/v1/walletService/walletUserList", "users", {"filter": search}, domain=number):
        yield {"domain": domain["domainName"], **each, "dids": dids[each["walletId"]]}


def _find(line: CommandLine, name: str, domain: str) -> Row:
    """Return a wallet. name: its name, e-mail address or walletId. Raises NotFound. Raises StartError if several
    wallets have the name."""
    search = "" if name.isdecimal() else name
    listed = line.listed("/api/v1/walletService/walletUserList", "users", {"filter": search}, domain=domain)
    found = [each for each in listed if fold(name) in {fold(str(each["username"])), fold(str(each["emailAddress"]))}
             or str(each["walletId"]) == name]  # fmt: skip
    if not found:
        raise NotFound(f"no wallet {name} in {domain}: see sallyport wallet list")
    if len(found) > 1:
        several = ", ".join(f"{each['walletId']} ({each['emailAddress']})" for each in found[:10])
        raise StartError(f"{len(found)} wallets have the name {name}: give one of these walletIds instead: {several}")
    return found[0]


def _user_id(line: CommandLine, domain: str, name: str) -> JSON:
    body: Row = {"filter": {"filterBy": "userName", "value": name}}
    listed = line.listed("/api/v1/endpointUsers/listAllEpmUsers", "epmUsers", body, domain=domain)
    return named(listed, "userName", name, "user")["userId"]


def _key(path: str) -> Row:
    """Return the fields method and publicKeyJwk for the body of createHolderDid. path: a file that contains a JWK, or
    the output of `wallet init --json`. Raises StartError if the file contains neither."""
    try:
        with click.open_file(path, "rb") as file:
            content: JSON = json.loads(file.read(_MAX_SIZE))
    except OSError as error:
        raise StartError(f"--key: {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise StartError(f"--key: {path} is not the output of `sallyport wallet init --json`, nor a JWK")
    if "publicKeyJwk" not in content:
        return {"publicKeyJwk": content}
    if content["publicKeyJwk"] is None:
        raise StartError("--key: the service keeps the key of this wallet, and already knows its DID: leave out --key")
    did = str(content.get("did", "did:key:"))
    return {"publicKeyJwk": content["publicKeyJwk"], "method": did.removeprefix("did:").partition(":")[0]}


def _print_wallet(line: CommandLine, made: Row, *, as_json: bool) -> None:
    """Print the walletKey, the token and the DID, if the answer contains them."""
    if as_json:
        line.print_json({name: value for name, value in made.items() if name not in {"code", "status", "message"}})
        return
    for name in ("walletKey", "token", "did"):
        if name in made:
            line.print(str(made[name]))


def _note_next_command(line: CommandLine, made: Row, email: str, option: str) -> None:
    words = f"--service {line.settings().public_url or 'URL'} --email {shlex.quote(email)} {option}".rstrip()
    line.note(f"the holder runs: sallyport wallet init --wallet-id {made['walletId']} {words}")
    line.note("and types the walletKey and the token, which are not shown again")
