"""Who may read the log?"""

from holdfast.gateway.auditing import SCOPE
from holdfast.gateway.operators import operates
from holdfast.model.call import Principal
from holdfast.model.errors import Forbidden
from holdfast.model.scopes import covers
from holdfast.ports import People


def audits(by: Principal, people: People) -> bool:
    return covers(by.scopes, SCOPE) or operates(by, people)


def need_auditor(by: Principal, people: People) -> None:
    """Raises Forbidden for everybody else."""
    if not audits(by, people):
        raise Forbidden(
            f"{by.user!r} may not read the log; this needs the scope {SCOPE!r} or the role 'operator'"
        )
