"""The directory agent: reads a directory that the service does not reach, and sends what it reads.

One reading is one run: begun, sent in numbered batches, finished; only then does the service apply it. So whatever ends
in the middle, a crash here or there, a directory that breaks off, leaves everything as it was, and the next run is
another one. A batch whose answer was lost is sent again under its number.

Most runs tell what has changed since the run that the service has applied last; every `full_every_hours` one tells all.
Which run that was is known to the service, so that an agent that is set up anew, and a service that was restored from a
copy, agree again by themselves. The agent's own state is when it told all.

settings  the `[directory]` table of the agent's file
sender    runs and their batches, sent until they are taken
agent     one reading from end to end; the loop around it
cli       `sallyport agent directory`
"""
