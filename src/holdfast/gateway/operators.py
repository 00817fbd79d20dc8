"""Who operates this gateway?"""

from holdfast.model.call import Principal
from holdfast.model.errors import Forbidden
from holdfast.ports import People


def operates(by: Principal, people: People) -> bool:
    """An operator; where there is none, the person at the terminal."""
    if "operator" in by.roles:
        return True
    return "user" in by.roles and not people.operated(by.tenant)


def need_operator(by: Principal, people: People) -> None:
    """Raises Forbidden for everybody else."""
    if not operates(by, people):
        raise Forbidden(f"{by.user!r} is no operator here; this needs the role 'operator'")
