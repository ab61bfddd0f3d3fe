"""Policies that plan whole bags at once by linear programmes."""
