"""The wallet `sallyport wallet`, for people and for tests.

The wallet uses only the service's HTTP operations, like any other wallet. It stores its key in a file that other users
of the machine must not read.

wallet  the wallet's file, and the HTTP operations that the wallet calls
cli     `sallyport wallet ...`: the commands of holders; the commands of admins are in `wallets.cli`
"""
