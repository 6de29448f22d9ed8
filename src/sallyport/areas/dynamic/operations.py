"""The HTTP operations of dynamic authorization: /network_device/DisconnectSession and ChangeSession."""

from sallyport.areas.dynamic.bodies import ChangeSession, DisconnectSession, SessionResults
from sallyport.areas.dynamic.sender import RequestOutcome
from sallyport.areas.dynamic.service import DynamicAuthorization, Result, Results
from sallyport.areas.policy.rules.bodies import replies
from sallyport.base.text import counted
from sallyport.base.wire import JSON
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, Caller, Gate


def operations(service: DynamicAuthorization, gate: Gate) -> Operations:
    sessions = Operations("Network devices", gate)

    @sessions.post("/network_device/DisconnectSession", roles=OPERATORS)
    async def disconnect_session(body: DisconnectSession, caller: Caller) -> Plain[SessionResults]:
        """Ask network devices to end one session, or all sessions of a user or a station, at most 100 at a time.

        The answer has a result for each session. It takes up to half a minute if a device does not answer.
        """
        if body.sessionId is not None:
            asked = await service.disconnect(body.sessionId, body.domainId)
        elif body.userName:
            asked = await service.disconnect_user(body.domainId, body.userName)
        else:
            asked = await service.disconnect_station(body.domainId, body.station)
        return _answer(asked)

    @sessions.post("/network_device/ChangeSession", roles=OPERATORS)
    async def change_session(body: ChangeSession, caller: Caller) -> Plain[SessionResults]:
        """Ask a network device to change the attributes of a live session (Change of Authorization)."""
        return _answer(await service.change(body.sessionId, replies(body.replyAttributes), body.domainId))

    return sessions


def _answer(asked: Results) -> Plain[SessionResults]:
    done = sum(each.answer.outcome is RequestOutcome.ACK for each in asked.results)
    more = "; more sessions are live" if asked.more else ""
    return Plain(
        {
            "code": 200,
            "status": "Success",
            "message": f"{done} of {counted(len(asked.results), 'session')} done{more}",
            "results": [_entry(each) for each in asked.results],
            "more": asked.more,
        }
    )


def _entry(result: Result) -> dict[str, JSON]:
    return {
        "sessionId": result.target.id,
        "userName": result.target.user_name or "",
        "outcome": result.answer.outcome,
        "errorCause": result.answer.error_cause,
        "errorText": result.error,
        "latencyMs": round(result.answer.latency_s * 1000, 3),
    }
