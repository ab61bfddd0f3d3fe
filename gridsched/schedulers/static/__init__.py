"""Policies that plan the whole bag at once, before the first task runs."""
