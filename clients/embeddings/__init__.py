"""Embedders: in a child process of this machine, behind an HTTP server, or by hashing for tests."""
