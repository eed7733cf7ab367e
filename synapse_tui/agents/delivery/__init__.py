"""From a message that was sent to a message that was typed and submitted."""
