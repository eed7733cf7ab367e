"""Messages and their deliveries: stored, queued, recovered, searched, retained."""
