"""Push notifications: those who asked are told of tasks over HTTP, without anybody waiting for them."""

from .desk import PushDesk
from .model import PushConfig, PushProtocol, Webhook

__all__ = ["PushConfig", "PushDesk", "PushProtocol", "Webhook"]
