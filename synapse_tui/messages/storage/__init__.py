"""Databases: locations, tables and migrations, SQLite and PostgreSQL."""
