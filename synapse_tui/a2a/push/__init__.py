"""Push notifications of tasks, over HTTP."""
