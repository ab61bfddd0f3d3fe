"""Policies of rigid parallel jobs on one homogeneous cluster (algorithms I)."""
