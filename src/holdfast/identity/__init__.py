"""Who is calling?

`Identity` turns the headers of a request, or the person at a terminal, into a
`Principal` whose scopes are already narrowed to what user, agent and key all allow.
"""

from holdfast.identity.build import build
from holdfast.identity.credential import Claim, Reader, Unauthenticated
from holdfast.identity.grants import Grant
from holdfast.identity.identity import Identity
from holdfast.identity.keys import mint
from holdfast.identity.people import Agent, Key, Person

__all__ = [
    "Agent",
    "Claim",
    "Grant",
    "Identity",
    "Key",
    "Person",
    "Reader",
    "Unauthenticated",
    "build",
    "mint",
]
