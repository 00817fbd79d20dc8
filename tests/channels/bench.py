"""Configurations with channels, around the bank of the approvals' tests."""

from pathlib import Path
from typing import Any

from tests.approvals.bank import config
from tests.channels.receiver import SECRET

ALL = ["asked", "escalated", "decided", "expired", "alert"]
BASE = "https://gate.example"


def told(
    folder: Path, channels: dict[str, Any], approvals: dict[str, Any] | None = None, **people: list[str]
) -> dict[str, Any]:
    """The bank's people and these channels, with the secrets in files."""
    (folder / "hook.key").write_text(SECRET + "\n")
    (folder / "mail.key").write_text("s3cret-word\n")
    return {
        **config(approvals, **people),
        "base_url": BASE,
        "secrets": {"hook": {"file": str(folder / "hook.key")}, "mail": {"file": str(folder / "mail.key")}},
        "channels": channels,
    }


def hook(url: str, **said: Any) -> dict[str, Any]:
    return {"webhook": {"url": url, "secret": "${secret:hook}"}, **said}
