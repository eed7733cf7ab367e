"""The box in which an agent takes its prompts: what stands there, whose it is, and Enter on it."""
