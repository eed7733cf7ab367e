"""Push notifications of tasks, over HTTP."""

from .service import PushService

__all__ = ["PushService"]
