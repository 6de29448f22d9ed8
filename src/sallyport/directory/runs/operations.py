"""The HTTP operations of directory agents: /api/v1/agent/directory/*."""

from sallyport.directory.runs.model import BatchTaken, BeginRun, FinishRun, RunBegun, RunFinished, SendBatch
from sallyport.directory.runs.service import Runs
from sallyport.web.operation import Operations
from sallyport.web.scope import DIRECTORY_AGENTS, OPERATORS, Caller, Gate

SENDERS = DIRECTORY_AGENTS | OPERATORS


def operations(service: Runs, gate: Gate) -> Operations:
    """The operations of this slice."""
    runs = Operations("Directory agent", gate)

    @runs.post("/api/v1/agent/directory/begin", roles=SENDERS)
    async def begin(body: BeginRun, caller: Caller) -> RunBegun:
        """Begin a run: one reading of a directory by its agent, sent in batches. With the runId of a run that is not
        finished it goes on; otherwise such a run of the directory is thrown away."""
        begun = await service.begin(body.domainId, body.directoryName, body.runId)
        return RunBegun(message="run begun", runId=begun.run_id, sequence=begun.sequence, cursor=begun.cursor)

    @runs.post("/api/v1/agent/directory/batch", roles=SENDERS)
    async def batch(body: SendBatch, caller: Caller) -> BatchTaken:
        """Send the next batch of a run, at most 500 entries. One that was taken already is a success. Another than the
        next is 409, with `sequence`, the one that is expected. Nothing is applied before the run is finished."""
        following = await service.take(body.domainId, body.runId, body.sequence, body.entries)
        return BatchTaken(message="batch taken", runId=body.runId, sequence=following)

    @runs.post("/api/v1/agent/directory/finish", roles=SENDERS)
    async def finish(body: FinishRun, caller: Caller) -> RunFinished:
        """Finish a run: an import applies it. With `complete`, what the run has not told of is removed."""
        job_id = await service.finish(body.domainId, body.runId, body.sequence, body.cursor, complete=body.complete)
        return RunFinished(message="import queued", jobId=job_id)

    return runs
