"""Readers of logs of real machines."""
