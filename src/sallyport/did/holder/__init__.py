"""The wallet `sallyport wallet`, for people and for tests.

It uses only the service's HTTP operations, like any other wallet. It stores its key in a file that no other user may
read.

wallet  the wallet's file, and the operations that it calls
cli     `sallyport wallet ...`: the commands of holders; the commands of admins are in `wallets.cli`
"""
