"""The campaign of faults: `make soak`. It runs an installation under a mixed load, breaks something every second, and
checks what the clients received against the promises of docs/architecture/index.md.

A campaign is a row of *installations*, each with an empty store, and an installation has *rounds* of some seconds. The
`schedule` follows from the seed alone: which faults begin when, how long they last, and their own random numbers. At
the end of a round all faults end and all clients get their answers. Then the `checks` compare the `history` of the
round with the store. In violent rounds, nodes are killed and stopped, and disks are full and fail. Calm rounds have
only faults that must not disturb other tenants, so that the delays of an untouched tenant and the growth of the service
are judged there.

`site` is the installation, with its provider and its directory; `faults` has one class for each fault; `nas`, `clients`
and `bulk` send the requests; `runner` puts them together. `programs` has the two helpers in C: `shim.c`, which is
preloaded and makes system calls fail and clocks wrong, and `relay.c`, which loses, repeats and reorders datagrams.
"""
