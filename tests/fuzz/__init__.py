"""Coverage-guided fuzzing of the parsers of octets from other organizations.

    make fuzz                      ten minutes in all
    make fuzz MINUTES=60           an hour in all
    make fuzz ARGS="dn ldif"       some targets

    targets     one function for each parser; it raises an error if the parser breaks a promise
    inside      what a client sends inside the tunnel of TTLS or PEAP
    others      servers and DIDs of tenants, agents, and files
    cloud       JSON answers of second factors, directories and identity providers
    admins      forms, files of bypass stations, keys
    properties  properties of the tests as targets
    bodies      the bodies of all operations
    folders     a folder with one file, and a watch that finds any access outside of it
    seeds       the first inputs of each target, from the vectors and helpers of the tests
    __main__    runs each target in a process of its own with atheris, and prints executions, coverage and findings

The folder `build/fuzz` keeps the inputs that reach new code, so that the next run continues there. It also keeps the
input of each finding. A finding becomes a test beside the parser. `make test` runs each target once over its seeds,
without atheris.
"""
