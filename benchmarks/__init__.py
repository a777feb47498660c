"""Measure the service on this machine: rates, latencies, CPU. Nothing here is asserted."""
