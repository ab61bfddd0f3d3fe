"""Robust heuristics with hard deadlines and an energy budget (paper 002; algorithms D)."""
