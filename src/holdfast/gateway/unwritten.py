"""Does a proposal say anything that no record can say?

Half of a surrogate pair is no character. Texts that came over a wire were decoded, so only code of the same
process can bring one; arguments have a gate of their own.
"""

from holdfast.model.call import Proposal
from holdfast.model.fields import FieldError

_TEXTS = ("tool", "version", "task", "step", "session", "trace_id")
EXPECTED = "text that can be written as UTF-8"


def unwritten(proposal: Proposal) -> FieldError | None:
    for name in _TEXTS:
        text = getattr(proposal, name)
        if text is not None and not text.isascii() and not is_whole(text):
            message = f"{name!r} cannot be recorded: half of a surrogate pair is in it"
            return FieldError(f"/{name}", EXPECTED, "half of a surrogate pair", message)
    return None


def is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
