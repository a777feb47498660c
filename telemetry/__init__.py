"""Metrics, logs and trace headers."""
