"""How does a secret look that is almost right? Never by chance the right one."""


def spoiled(text: str) -> str:
    """Of the same length, with another digit near its end: the last ones may carry padding alone."""
    return text[:-5] + ("1" if text[-5] == "0" else "0") + text[-4:]
