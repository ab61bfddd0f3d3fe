"""What tests of commands share."""

from command_fixtures import ex_a, gridsched, open_folder, refused, simgrid, without_privileges  # noqa: F401
