"""The wallets in which people keep their credentials. A wallet belongs to one person, so one row is both the wallet and
its user: `walletId` and `userId` are the same number. The wallet authenticates with a walletKey, which is shown once;
`key` describes the values that are stored instead. The wallet's token has the role wallet and is valid only for the
operations of this wallet.

wallet      values
key         the values that are derived from a walletKey, and sealing for its owner
guard       checks which callers may act for a wallet, and limits wrong walletKeys
bodies      requests and answers
operations  /api/v1/walletService/*, /api/v1/wallet/users
service     registration, assignment, delivery, acknowledgement
users       the wallets and credentials of endpoint users
repo        SQL
cli         `sallyport wallet register`, `assign`, `list`, `reset`: the commands of admins
"""
