"""What did the issuer say of people lately?

Policies, and whoever looks for somebody to approve, want the roles of people of whom they know only the name.
"""

from holdfast.identity.people import Person

MOST = 8192
"""People who are remembered: far more than credentials are, so whoever is active is."""


class Told:
    def __init__(self) -> None:
        self._roles: dict[tuple[str, str], frozenset[str]] = {}

    def remember(self, person: Person) -> None:
        name = (person.tenant, person.name)
        self._roles.pop(name, None)
        self._roles[name] = person.roles
        if len(self._roles) > MOST:
            self._roles.pop(next(iter(tuple(self._roles))), None)  # whoever has not come for the longest time

    def roles(self, tenant: str, user: str) -> frozenset[str] | None:
        return self._roles.get((tenant, user))

    def holders(self, tenant: str, role: str) -> frozenset[str]:
        came = [(name, roles) for (where, name), roles in tuple(self._roles.items()) if where == tenant]
        return frozenset(name for name, roles in came if role == "user" or role in roles)

    def tenants(self) -> frozenset[str]:
        return frozenset(tenant for tenant, _ in tuple(self._roles))
