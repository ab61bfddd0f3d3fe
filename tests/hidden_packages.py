"""A ``sitecustomize.py`` with which Python finds none of the packages that HIDDEN names."""

#: Hides packages from all that looks for them, in this process and in those that it starts.
HIDES = """
import os
import sys
from importlib.machinery import PathFinder

hidden, find = set(os.environ["HIDDEN"].split(",")), PathFinder.find_spec
PathFinder.find_spec = classmethod(
    lambda cls, name, *more: None if name.partition(".")[0] in hidden else find(name, *more)
)
"""
