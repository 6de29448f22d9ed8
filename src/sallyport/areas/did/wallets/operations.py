"""The HTTP operations of wallets: /api/v1/walletService/*, /api/v1/wallet/users."""

from sallyport.areas.did.wallets.bodies import (
    Acknowledge,
    AssignWallet,
    ListWallets,
    PollCredentials,
    Polled,
    RegisterWallet,
    ResetWallet,
    WalletList,
    WalletRegistered,
)
from sallyport.areas.did.wallets.guard import NO_WALLET
from sallyport.areas.did.wallets.service import Wallets, paired
from sallyport.areas.did.wallets.wallet import Delivered, NewWallet, Registered
from sallyport.base.answer import answers
from sallyport.base.clock import iso
from sallyport.base.errors import NotFound
from sallyport.base.model import Done
from sallyport.base.text import counted
from sallyport.base.wire import Minimum
from sallyport.store.model import ListQuery
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, WALLETS, Caller, Gate


def operations(service: Wallets, gate: Gate) -> Operations:
    """Declare the operations of wallets."""
    wallets = Operations("Wallets", gate)
    _declare_managing(wallets, service)
    _declare_holding(wallets, service)
    return wallets


def _declare_managing(wallets: Operations, service: Wallets) -> None:
    @wallets.post("/api/v1/walletService/registerWalletUser", roles=OPERATORS)
    async def register(body: RegisterWallet, caller: Caller) -> WalletRegistered:
        """Register the wallet of a person. Only this answer contains the walletKey and the token. The token is valid
        only for the operations of this wallet."""
        new = NewWallet(body.domainId, body.username, body.emailAddress, body.walletUrl)
        return _registered(await service.register(caller.tenant_id, new), "wallet user registered")

    @wallets.post("/api/v1/walletService/resetWallet", roles=OPERATORS)
    async def reset(body: ResetWallet, caller: Caller) -> WalletRegistered:
        """Give a lost wallet a new walletKey and token. The former walletKey and token become invalid at once.
        Holders' keys that the service kept for the wallet are lost. Afterwards, revoke the wallet's credentials, and
        issue new ones to a new DID."""
        made = await service.reset(caller.tenant_id, body.domainId, body.walletId)
        return _registered(made, "wallet reset")

    @wallets.post("/api/v1/walletService/walletUserList", "/api/v1/wallet/users", roles=READERS)
    async def wallet_users(body: ListWallets, caller: Caller) -> Plain[WalletList]:
        """List the wallet users of a domain, ordered by id. filter: a part of a user name or an e-mail address."""
        page = body.page()
        listed, total = await service.page(ListQuery(body.domainId, page.offset, page.size), body.filter, body.walletId)
        is_minimum = {"totalIsMinimum": True} if isinstance(total, Minimum) else {}
        return Plain(
            {
                "code": 200,
                "status": "Success",
                "message": counted(total, "wallet user"),
                "count": total,
                "users": answers(listed, status="Registered"),
                **is_minimum,
            }
        )

    @wallets.post("/api/v1/walletService/assignWalletUser", roles=OPERATORS)
    async def assign(body: AssignWallet, caller: Caller) -> Done:
        """Assign credentials to wallet users. With several wallets, each wallet gets one credential. A single wallet
        gets all credentials."""
        pairs = paired(body.walletId, body.userId, body.credentialId)
        await service.assign(caller.tenant_id, pairs)
        return Done(message=f"{counted(len(pairs), 'credential')} assigned")


def _declare_holding(wallets: Operations, service: Wallets) -> None:
    @wallets.post("/api/v1/walletService/pollCredentials", roles=WALLETS | OPERATORS)
    async def poll(body: PollCredentials, caller: Caller) -> Plain[Polled]:
        """List the credentials that a wallet has accepted, or that are assigned to the wallet. Each credential is a
        token (VC-JWT). The credentials are ordered by id.

        A page ends early when the tokens of the page reach 2 MiB. `totalCount` is the number of all credentials.
        pageNumber and pageSize select the other pages.
        """
        wallet_key = body.walletKey.get_secret_value()
        wallet, delivered, total = await service.deliver(caller, body.email, wallet_key, body.page())
        return Plain(
            {
                "code": 200,
                "status": "Success",
                "message": counted(len(delivered), "credential"),
                "email": wallet.email,
                "walletKey": wallet_key,
                "totalCount": total,
                "credentials": [_polled(each) for each in delivered],
            }
        )

    @wallets.post("/api/v1/walletService/acknowledgeCredential", roles=WALLETS | OPERATORS)
    async def acknowledge(body: Acknowledge, caller: Caller) -> Done:
        """Accept or ignore a credential. The choice may be changed later."""
        if body.userId != body.walletId:
            raise NotFound(NO_WALLET)
        await service.acknowledge(caller, body.walletId, body.credentialId, accept=body.accept)
        return Done(message="credential accepted" if body.accept else "credential ignored")


def _registered(made: Registered, message: str) -> WalletRegistered:
    return WalletRegistered(
        message=message,
        walletId=made.wallet_id,
        userId=made.wallet_id,
        walletKey=made.wallet_key,
        token=made.token,
    )


def _polled(delivered: Delivered) -> dict[str, object]:
    credential = delivered.credential
    return {
        "credentialId": credential.id,
        "credentialName": credential.name,
        "issuerName": credential.issuer_name,
        "issuerDid": credential.issuer_did,
        "userDid": credential.holder_did,
        "jwt": delivered.jwt,
        "createdAt": iso(credential.issued_at),
        "status": credential.status,
        "epmPassword": delivered.password,
    }
