"""Schedulers of serial tasks with utility functions, under an energy budget (paper 000)."""
