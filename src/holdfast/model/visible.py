"""Is a tool there, as far as somebody can tell?"""

from holdfast.model.bounds import UNBOUND
from holdfast.model.call import Principal
from holdfast.model.contract import Contract
from holdfast.model.scopes import covers_all


def visible(principal: Principal, contract: Contract) -> bool:
    """Whether their scopes, and the bounds of what was delegated to them, reach it."""
    if not covers_all(principal.scopes, contract.security.required_scopes):
        return False
    return principal.bounds is UNBOUND or principal.bounds.reaches(contract.tool, ())
