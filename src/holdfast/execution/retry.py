"""How long to wait before trying again: base * 2^(n-1), capped, jittered, never less than asked for."""

from holdfast.model import defaults


def pause(failures: int, retry_after_ms: int | None, chance: float) -> float:
    """Seconds to wait after `failures` failed attempts; `chance` is uniform in [0, 1)."""
    wait: float = min(defaults.RETRY_BASE_S * 2 ** (failures - 1), defaults.RETRY_CAP_S)
    wait *= 1 + defaults.RETRY_JITTER * (2 * chance - 1)
    return max(wait, (retry_after_ms or 0) / 1000)
