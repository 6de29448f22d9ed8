"""Coverage-guided fuzzing of everything that reads octets of strangers.

    make fuzz                      ten minutes in all
    make fuzz MINUTES=60           an hour in all
    make fuzz ARGS="dn ldif"       some targets

    targets   one function for each parser; it raises an error if the parser breaks a promise
    bodies    the bodies of all operations
    seeds     the first inputs of each target, from the vectors and helpers of the tests
    __main__  runs each target in a process of its own with atheris, and prints executions, coverage and findings

The folder `build/fuzz` keeps the inputs that reach new code, so that the next run continues there. It also keeps the
input of each finding. A finding becomes a test beside the parser. `make test` runs each target once over its seeds,
without atheris.
"""
