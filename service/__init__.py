"""Composition root: settings, wiring, roles, commands, embedded stack."""
