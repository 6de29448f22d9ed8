"""Wallets: where people keep their credentials.

A wallet belongs to one person, so that one row is both the wallet and its user: `walletId` and `userId` are one
number. It authenticates by a walletKey, which is shown once; `key` says what is kept of it. Its token has the role
wallet and is good for the operations of this wallet alone.

key       what is derived from a walletKey, and sealing for whoever has it
guard     who may act for a wallet, and how often a wrong walletKey may be tried
model     bodies, answers and rows
repo      SQL
service   registration, assignment, delivery, acknowledgement
sealing   what those who issue know of wallets
api       /api/v1/walletService/*, /api/v1/wallet/users
"""
