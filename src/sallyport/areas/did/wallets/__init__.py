"""The wallets in which people keep their credentials. A wallet belongs to one person. So one row is both the wallet and
its user, and `walletId` and `userId` are the same number.

The wallet authenticates with a walletKey. The walletKey is shown once. The service stores only values that are derived
from the walletKey (`key`). The wallet's token has the role wallet, and is valid only for the operations of this wallet.

wallet      values: a wallet, a delivered credential
key         the values that are derived from a walletKey, and encryption for its owner
guard       checks which callers may act for a wallet, and limits wrong walletKeys
bodies      requests and answers
operations  /api/v1/walletService/*, /api/v1/wallet/users
service     register wallets; assign, deliver and acknowledge credentials
users       the wallets and credentials of endpoint users
repo        SQL
cli         `sallyport wallet register`, `assign`, `list`, `reset`: the commands of admins
"""
