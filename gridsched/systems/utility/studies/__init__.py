"""The studies of papers 000 and 001 and what goes beyond them, their claims and what they read."""
