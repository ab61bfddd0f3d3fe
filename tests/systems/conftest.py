"""What tests of commands share."""

from command_fixtures import ex_a, gridsched, refused, simgrid  # noqa: F401
