"""Databases: where they are, their tables and migrations, SQLite and PostgreSQL."""
