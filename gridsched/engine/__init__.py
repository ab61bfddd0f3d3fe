"""The state machine between events and policies, shared by both drivers."""

from gridsched.engine.controller import Controller
from gridsched.engine.execution import Execution, SetPState, Stop, Transfer, TurnOff, TurnOn
from gridsched.engine.kinds_of_resources import takes_sets

__all__ = ["Controller", "Execution", "SetPState", "Stop", "Transfer", "TurnOff", "TurnOn", "takes_sets"]
