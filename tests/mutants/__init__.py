"""Mutants: small faults in the source, one at a time. A mutant that no test notices shows a missing test.

    $ make mutate AREA=decision

`areas` lists the areas with their sources and tests, `operators` the kinds of faults, `mutations` the mutants of a
file. A run has three stages, each in a process that is forked before anything of the project is imported:

    recording   runs each file of tests once with `loading.instrumented` sources, and stores which statements each test
                runs. The record of a file is valid until that file or a source of the area changes.
    swapped     collects the tests once. For each mutant in a function, a forked child puts the mutated code into the
                live function and runs the tests that run the statement, quick and specific tests first, until one
                fails. Before these, it runs the tests that have noticed the last mutants of the file. A child costs no
                import. With PostgreSQL, it takes over the databases of earlier children (`databases`).
    imported    for mutants in code that runs at import, such as constants. A forked child imports the mutated file.

The result is a file with one line for each mutant (`results`). An interrupted run continues there. `explained.txt` has
the survivors that no test can or should notice, with the reason.

Programs that tests start as other processes run without the fault. So the tests of an area are those that call the code
in their own process.

mutmut 3.8 and cosmic-ray 8.7 were measured first. mutmut copes with the tests and takes one second for a mutant of
`web/scope`, but it changes neither decorated functions, such as `decide`, nor constants and roles. cosmic-ray starts
Python for each mutant: 3 s of imports.
"""
