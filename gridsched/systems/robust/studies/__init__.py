"""The studies of paper 002 and what goes beyond it, with their claims."""
