"""Driven side: PostgreSQL."""
