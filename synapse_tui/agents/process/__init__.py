"""An agent's process and its terminal: bytes out, keys in, logs."""
