"""A holder for people and for tests: `sallyport wallet`.

It knows the service by its HTTP operations alone, as any other wallet would, and keeps its key in a file of its own
that no other user may read.

wallet  its file, and the operations that it calls
cli     `sallyport wallet ...`: what a holder runs; what an admin runs is in `wallets.cli`
"""
