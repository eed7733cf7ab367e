"""`@agent message` at the keyboard: keys are held while they can be an address."""

from .interceptor import MentionInterceptor
from .model import ComposerView, Mention, MentionKey, MentionView, Outcome, Pasted

__all__ = ["ComposerView", "Mention", "MentionInterceptor", "MentionKey", "MentionView", "Outcome", "Pasted"]
