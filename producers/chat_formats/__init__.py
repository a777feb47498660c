"""Chats that other programs wrote, read into one shape: one module a family of formats."""
