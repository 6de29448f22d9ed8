"""A holder for people and for tests: `sallyport wallet`.

It knows the service by its HTTP operations alone, as any other wallet would, and keeps its key in a file of its own
that nobody else may read.

file     the wallet's file, mode 0600
remote   the operations that a wallet calls
cli      `sallyport wallet ...`
"""
