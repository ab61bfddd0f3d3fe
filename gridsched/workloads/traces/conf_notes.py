"""What a configuration of Slurm weighs and neither it nor a log has: priorities of QOS, and shares."""

from __future__ import annotations

from collections.abc import Iterator

from gridsched.platform_io.slurm_conf import SlurmConf
from gridsched.workloads.traces.job_table import JobTable


def missing_factors(conf: SlurmConf, jobs: JobTable) -> Iterator[str]:
    """Yield a line for each factor of priorities that would differ among the jobs of a log, and has no values here.

    Parameters
    ----------
    conf : SlurmConf
    jobs : JobTable
    """
    if conf.settings.get("PriorityType", "").lower() != "priority/multifactor":
        return
    for key, attributes, what, option in (
        ("PriorityWeightQOS", ("qos",), "priorities of QOS: all are 0", "qos={'NAME': 1}"),
        ("PriorityWeightFairshare", ("account", "user"), "shares: all are equal", "shares={'USER': 2}"),
    ):
        weight = conf.settings.get(key, "0")
        columns = [jobs.attributes[each] for each in attributes if each in jobs.attributes]
        are_alike = columns and all(len(set(texts.tolist())) == 1 for texts in columns)
        if weight.isdecimal() and weight.strip("0") and not are_alike:
            lacks = "" if columns else f", and the log no {' or '.join(attributes)}"
            yield (
                f"{conf.path}: {key} is {weight[:20]}, and the file has no {what}{lacks}. Scheduler slurm takes them "
                f'by --set "order=multifactor({option})"'
            )
