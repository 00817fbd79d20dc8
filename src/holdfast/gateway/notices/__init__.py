"""What are people told beside the answers to their own calls, and how does it reach them? APR-7."""

from holdfast.gateway.notices.notices import Notices

__all__ = ["Notices"]
