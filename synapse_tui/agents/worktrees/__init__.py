"""A git worktree for each agent: made, forecast, merged, kept and removed without losing anything."""
