"""The claims of the study `lecsa_readings`: the numbers to come close to, those of table 3.

They are compared by their errors, so that tolerances play no part.
"""

from __future__ import annotations

from gridsched.reproduction.studies.lecsa import table_3
from gridsched.runs.claims_schema import Ground

CLAIMS = table_3("lecsa(share_rule=value)", Ground("after", "readings are compared by their errors; it plays no part"))
