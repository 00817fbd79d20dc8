"""What is written with an outcome, beside it, in memory?"""

import orjson

from holdfast.model.job import JobState, Submitted
from holdfast.model.operation import OperationRef
from holdfast.model.sequel import NewJob, Sequel, SessionBegun, SessionMoved, SessionWorked
from holdfast.stores.memory import upstream_sessions
from holdfast.stores.memory.shelf import Shelf


def write(shelf: Shelf, sequel: Sequel, ref: OperationRef, call_id: str, worker: str, at: float) -> None:
    match sequel:
        case NewJob():
            shelf.jobs[ref.tenant, call_id] = (_job(sequel, ref.tenant, call_id, at), sequel.token)
        case SessionBegun():
            upstream_sessions.begun(shelf, sequel, ref, call_id, worker, at)
        case SessionWorked():
            upstream_sessions.worked(shelf, sequel, ref.tenant, call_id, at)
        case SessionMoved():
            upstream_sessions.moved(shelf, sequel, ref.tenant, at)


def _job(sequel: NewJob, tenant: str, call_id: str, at: float) -> Submitted:
    said = orjson.loads(sequel.body)
    return Submitted(
        tenant=tenant,
        call_id=call_id,
        state=JobState.RUNNING,
        name=said["id"],
        verify=tuple(said.get("verify", ())),
        progress=sequel.progress,
        ends_at=sequel.ends_at,
        polls=0,
        next_at=sequel.next_at,
        give_up_at=sequel.give_up_at,
        why="",
        looked_at=at,
    )
