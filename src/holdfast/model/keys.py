"""Is this a key? 1 to 255 printable ASCII characters; IDM-1+."""

MAX_KEY = 255


def well_formed(key: str) -> bool:
    return 0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable()
