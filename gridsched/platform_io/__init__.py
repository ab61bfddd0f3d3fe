"""Platforms from files and tables, and back into SimGrid XML."""
