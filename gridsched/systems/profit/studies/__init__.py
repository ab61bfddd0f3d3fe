"""The studies of paper 003 and what goes beyond it, their claims and what they read."""
