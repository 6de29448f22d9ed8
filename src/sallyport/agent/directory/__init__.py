"""The directory agent: reads a directory that the service does not reach, and sends what it reads.

A reading is a run: begun, sent in numbered batches, finished; only then does the service apply it. A run that ends
early, by a crash or a closed connection, changes nothing, and the next one starts again. A batch whose answer was lost
is sent again with its number.

Most runs have the changes since the run that the service has applied last; every `full_every_hours` a run is complete.
The service knows the last run, so that an agent that is installed again, and a service that was restored from a copy,
agree again by themselves. The agent's own state is the time of the last complete run.

settings  the `[directory]` table of the agent's file
sender    runs and their batches, sent until they are taken
agent     one reading from end to end; the loop around it
cli       `sallyport agent directory`
"""
