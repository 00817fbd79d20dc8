"""What is allowed, decided outside the model. Default deny."""

from holdfast.policy.starter import DenyAll, Starter

__all__ = ["DenyAll", "Starter"]
