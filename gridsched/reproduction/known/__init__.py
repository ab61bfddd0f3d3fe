"""What others have printed or measured on inputs that can be had, beside what gridsched gives on them."""

from gridsched.reproduction.known.cases import Case, Input, LogRun, Outcome, Row, outcomes

__all__ = ["Case", "Input", "LogRun", "Outcome", "Row", "outcomes"]
