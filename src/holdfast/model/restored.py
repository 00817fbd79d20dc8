"""What is halted while a store lives again and nobody has said yet what happened since its backup?"""

RESTORED = "store:restored"
"""The target of that halt: set by `holdfast store restore`, lifted by `holdfast store recover` alone."""
REFUSED = (
    "the store was put back from a backup, so what happened since is not known here: nothing is written until"
    " an operator has run 'holdfast store recover'"
)
NOT_BY_HAND = f"{RESTORED!r} is lifted by 'holdfast store recover' alone, once it knows what happened since"
