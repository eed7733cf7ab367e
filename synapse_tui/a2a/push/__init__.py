"""Push notifications of tasks, over HTTP."""

from .service import PushService
from .subscriptions import PushConfig, PushProtocol, Webhook

__all__ = ["PushConfig", "PushProtocol", "PushService", "Webhook"]
