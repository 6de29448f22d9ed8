"""An exhaustive explorer of the second factor's life over several nodes.

    python -m tests.explore                  all instances, to the end
    python -m tests.explore kill             one instance

Each node is the real `SecondFactor` with the real `SharedCalls` and `SharedChallenges`. All nodes share one database in
memory, where the real functions of `login.second.repo` run. The explorer replaces what surrounds them:

    store   the database; each transaction of a node waits until the explorer runs it
    phone   the provider and its user; each call waits until the explorer runs it
    node    a node: the second factor, the requests that it has received, its answers
    world   two or three nodes, the device, the clock, the faults; the steps that are possible now
    search  runs every order of the steps, recognizes states that it has seen, and checks the promises
    planted errors that the explorer must find: a condition is missing in a copy of the code

A step is a transaction, a call of the provider, the arrival of a datagram, an answer of the user, a fault, or a
movement of the clock. A transaction and a call can fail, before or after they have happened. Between two steps all
nodes run until they wait. So a kill between two steps is a kill between any two transactions. A transaction runs as a
whole: PostgreSQL's row locks give the same guarantee for the rows of one prompt.

The name of a step is the name of the function that runs in the transaction, so the model cannot differ from the code.
"""
