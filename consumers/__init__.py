"""Driving side: everything that the service takes off a topic."""
