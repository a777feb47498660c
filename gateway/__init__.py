"""Driving side: HTTP."""
