"""The state machine between events and policies, shared by both drivers."""

from gridsched.controller.calendar import Calendar
from gridsched.controller.controller import Controller
from gridsched.controller.execution import Execution, Stop, TurnOff, TurnOn
from gridsched.controller.state import State

__all__ = ["Calendar", "Controller", "Execution", "State", "Stop", "TurnOff", "TurnOn"]
