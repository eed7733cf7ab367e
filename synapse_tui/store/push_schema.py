"""The step by which a file of the history comes to the tables of push notifications."""

from __future__ import annotations

PUSH_STEP = (
    """CREATE TABLE push_configs (
        id VARCHAR NOT NULL PRIMARY KEY,
        project VARCHAR NOT NULL,
        agent_name VARCHAR NOT NULL,
        protocol VARCHAR NOT NULL,
        url VARCHAR NOT NULL,
        task_id VARCHAR NOT NULL,
        config_id VARCHAR NOT NULL,
        events JSON NOT NULL,
        token VARCHAR NOT NULL,
        scheme VARCHAR NOT NULL,
        credentials VARCHAR NOT NULL,
        secret VARCHAR NOT NULL,
        persist BOOLEAN NOT NULL,
        owner VARCHAR NOT NULL,
        created_at DATETIME NOT NULL,
        ended_at DATETIME
    )""",
    """CREATE TABLE push_deliveries (
        id VARCHAR NOT NULL PRIMARY KEY,
        subscription_id VARCHAR NOT NULL,
        task_id VARCHAR NOT NULL,
        event VARCHAR NOT NULL,
        subject VARCHAR NOT NULL,
        body VARCHAR NOT NULL,
        state VARCHAR NOT NULL,
        attempts INTEGER NOT NULL,
        status INTEGER NOT NULL,
        problem VARCHAR NOT NULL,
        created_at DATETIME NOT NULL,
        due_at DATETIME NOT NULL,
        ended_at DATETIME
    )""",
    "CREATE INDEX ix_push_deliveries_subscription_id ON push_deliveries (subscription_id)",
)
