"""The directory agent: reads a directory that the service does not reach, and sends what it reads.

A reading is a run. The agent begins it, sends it in numbered batches, and finishes it; only then does the service apply
it. A run that ends early, by a crash or a closed connection, changes nothing, and the next one starts again. A batch
whose answer was lost is sent again with its number.

Most runs have only the changes since the last run that the service has applied; every `full_every_hours` a run is
complete. The service knows the last run, so the two agree again without help after a new installation of the agent, or
after a restore of the service from a copy. The agent itself stores the times of the last run and of the last complete
run, and the last cursor.

settings  the `[directory]` table of the agent's file
sender    runs and their batches, sent until the service has stored them
agent     one run, and the loop that repeats runs
cli       `sallyport agent directory`
"""
