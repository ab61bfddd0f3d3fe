"""Schedulers that learn; `gridsched.learning` is what users import of it."""

from gridsched.plugins import Plugin

plugin = Plugin("learning")  # its schedulers are made around agents, and have no ids
