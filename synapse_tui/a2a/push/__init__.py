"""Push notifications: those who asked are told of tasks over HTTP, without anybody waiting for them."""

from .service import PushDesk
from .subscriptions import PushConfig, PushProtocol, Webhook

__all__ = ["PushConfig", "PushDesk", "PushProtocol", "Webhook"]
