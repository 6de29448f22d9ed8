"""The directory agent reads a directory to which the service cannot connect, and sends its entries to the service.

One reading of the directory is a run. The agent begins the run, sends its entries in numbered batches, and finishes it;
only then does the service apply the run. A run that is interrupted, by a crash or a closed connection, changes nothing,
and the next run starts from the same point. If the answer to a batch is lost, the agent sends the batch again with the
same number.

Most runs contain only the changes since the last run that the service has applied; every `full_every_hours` a run is
complete. The service stores the cursor of the last applied run. Therefore agent and service synchronize again without
an admin's help after a new installation of the agent, or after a restore of the service from a backup. The agent itself
stores the times of the last run and of the last complete run, and the last cursor.

settings  the `[directory]` table of the agent's configuration file
sender    sending runs and their batches until the service has stored them
agent     one run, and the loop that repeats runs
cli       `sallyport agent directory`
"""
