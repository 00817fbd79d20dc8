"""By what name do outside parties know a caller? AUT-7.

By one that says nothing: keyed, so that nobody can try names until one fits, and another one for every party,
so that two of them cannot compare.
"""

from holdfast.model.call import Principal
from holdfast.model.token import Signer

LENGTH = 32
"""Hexadecimal digits: 128 bits."""


def opaque(signer: Signer, principal: Principal, party: str = "") -> str:
    """The same in every process of a store, for this caller towards this party."""
    data = "\0".join((party, principal.id, *principal.act)).encode()
    return signer.sign(principal.tenant, "opaque", data)[:LENGTH]


def opaque_name(signer: Signer, tenant: str, name: str, party: str = "") -> str:
    """Of somebody who stands in the way from the person to the caller."""
    return signer.sign(tenant, "opaque", f"{party}\0act\0{name}".encode())[:LENGTH]
