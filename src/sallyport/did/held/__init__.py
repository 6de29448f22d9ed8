"""Credentials as wallets hold them, and who can show one for an endpoint user.

A credential is issued elsewhere; here it is assigned to a wallet, accepted or ignored by its person, and found for
those who log in.

model      values
repo       SQL
endpoints  the wallets and credentials of endpoint users: what updateUserWallet assigns
"""
