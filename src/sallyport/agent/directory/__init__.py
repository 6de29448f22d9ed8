"""The directory agent: it reads a directory to which the service cannot connect, and sends the directory's entries to
the service.

A run is one reading of the directory. The agent begins the run, sends the entries in numbered batches, and finishes the
run. The service applies a run only after the agent has finished it. A crash or a closed connection may interrupt a run.
In this case, the service changes nothing, and the next run starts from the same point. If the answer to a batch is
lost, the agent sends the batch again with the same number.

Most runs contain only the changes since the last run that the service has applied. Every `full_every_hours` hours, a
run contains all entries. The service stores the cursor of the last applied run: the position in the directory from
which the next run continues. Therefore no admin's help is needed after a new installation of the agent or a restore of
the service: the next run continues from the stored cursor. The agent itself stores the times of the last run and of the
last complete run, and the last cursor.

    settings  the `[directory]` table of the agent's configuration file
    sender    sends the entries in batches until the service has stored them
    agent     reads and sends the directory once, and repeats this in a loop
    cli       `sallyport agent directory`
"""
