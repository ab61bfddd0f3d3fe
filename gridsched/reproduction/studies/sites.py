"""The claims of the study `sites`."""

from __future__ import annotations

from itertools import product

from gridsched.reproduction.claim_statistics import percent_more
from gridsched.runs.claims_schema import Claim, Explanation, Ground, numbered

SIGN = Ground("before", "the sign, asked before the study was run; the draft was run on other tasks and intensities")
WAIT_AT_SITES_0_H = "Wait at sites(max_delay_s=0.0)"
WAIT_AT_SITES_PERSISTENCE_0_H = "Wait at sites, persistence(max_delay_s=0.0)"
WAIT_3_H = "Wait(max_delay_s=10800.0)"
WAIT_6_H = "Wait(max_delay_s=21600.0)"
WAIT_12_H = "Wait(max_delay_s=43200.0)"
WAIT_24_H = "Wait(max_delay_s=86400.0)"
WAIT_PERSISTENCE_3_H = "Wait, persistence(max_delay_s=10800.0)"
WAIT_PERSISTENCE_6_H = "Wait, persistence(max_delay_s=21600.0)"
WAIT_PERSISTENCE_12_H = "Wait, persistence(max_delay_s=43200.0)"
WAIT_PERSISTENCE_24_H = "Wait, persistence(max_delay_s=86400.0)"
WAIT_AT_SITES_3_H = "Wait at sites(max_delay_s=10800.0)"
WAIT_AT_SITES_6_H = "Wait at sites(max_delay_s=21600.0)"
WAIT_AT_SITES_12_H = "Wait at sites(max_delay_s=43200.0)"
WAIT_AT_SITES_24_H = "Wait at sites(max_delay_s=86400.0)"
WAIT_AT_SITES_PERSISTENCE_3_H = "Wait at sites, persistence(max_delay_s=10800.0)"
WAIT_AT_SITES_PERSISTENCE_6_H = "Wait at sites, persistence(max_delay_s=21600.0)"
WAIT_AT_SITES_PERSISTENCE_12_H = "Wait at sites, persistence(max_delay_s=43200.0)"
WAIT_AT_SITES_PERSISTENCE_24_H = "Wait at sites, persistence(max_delay_s=86400.0)"

CLAIMS = [
    *(
        Claim(
            f"site-{k}",
            "driver",
            text,
            "not in a paper",
            percent_more("carbon_g", scheduler, "XSufferage", where={"idle": idle}),
            "order",
            SIGN,
            unit="%",
        )
        for k, (idle, (scheduler, text)) in enumerate(
            product(
                ("5 % idle", "40 % idle"),
                (
                    (WAIT_AT_SITES_0_H, "How much more XSufferage emits than following sites (perfect forecast)"),
                    (
                        WAIT_AT_SITES_PERSISTENCE_0_H,
                        "How much more XSufferage emits than following sites (persistence)",
                    ),
                ),
            ),
            start=1,
        )
    ),
    *(
        Claim(
            f"hour-{k}",
            "driver",
            text,
            "not in a paper",
            percent_more("carbon_g", scheduler, "XSufferage", where={"idle": idle}),
            "order",
            SIGN,
            unit="%",
        )
        for k, (idle, (scheduler, text)) in enumerate(
            product(
                ("5 % idle", "40 % idle"),
                (
                    (WAIT_3_H, "How much more XSufferage emits than XSufferage, put off up to 3 h (perfect forecast)"),
                    (WAIT_6_H, "How much more XSufferage emits than XSufferage, put off up to 6 h (perfect forecast)"),
                    (
                        WAIT_12_H,
                        "How much more XSufferage emits than XSufferage, put off up to 12 h (perfect forecast)",
                    ),
                    (
                        WAIT_24_H,
                        "How much more XSufferage emits than XSufferage, put off up to 24 h (perfect forecast)",
                    ),
                    (
                        WAIT_PERSISTENCE_3_H,
                        "How much more XSufferage emits than XSufferage, put off up to 3 h (persistence)",
                    ),
                    (
                        WAIT_PERSISTENCE_6_H,
                        "How much more XSufferage emits than XSufferage, put off up to 6 h (persistence)",
                    ),
                    (
                        WAIT_PERSISTENCE_12_H,
                        "How much more XSufferage emits than XSufferage, put off up to 12 h (persistence)",
                    ),
                    (
                        WAIT_PERSISTENCE_24_H,
                        "How much more XSufferage emits than XSufferage, put off up to 24 h (persistence)",
                    ),
                ),
            ),
            start=1,
        )
    ),
    *(
        Claim(
            f"both-{k}",
            "driver",
            text,
            "not in a paper",
            percent_more("carbon_g", scheduler, against, where={"idle": idle}),
            "order",
            SIGN,
            unit="%",
        )
        for k, (idle, (scheduler, against, text)) in enumerate(
            product(
                ("5 % idle", "40 % idle"),
                (
                    (
                        WAIT_AT_SITES_3_H,
                        WAIT_AT_SITES_0_H,
                        (
                            "How much more following sites (perfect forecast) emits than following sites, put "
                            "off up to 3 h (perfect forecast)"
                        ),
                    ),
                    (
                        WAIT_AT_SITES_6_H,
                        WAIT_AT_SITES_0_H,
                        (
                            "How much more following sites (perfect forecast) emits than following sites, put "
                            "off up to 6 h (perfect forecast)"
                        ),
                    ),
                    (
                        WAIT_AT_SITES_12_H,
                        WAIT_AT_SITES_0_H,
                        (
                            "How much more following sites (perfect forecast) emits than following sites, put "
                            "off up to 12 h (perfect forecast)"
                        ),
                    ),
                    (
                        WAIT_AT_SITES_24_H,
                        WAIT_AT_SITES_0_H,
                        (
                            "How much more following sites (perfect forecast) emits than following sites, put "
                            "off up to 24 h (perfect forecast)"
                        ),
                    ),
                    (
                        WAIT_AT_SITES_PERSISTENCE_3_H,
                        WAIT_AT_SITES_PERSISTENCE_0_H,
                        (
                            "How much more following sites (persistence) emits than following sites, put off up "
                            "to 3 h (persistence)"
                        ),
                    ),
                    (
                        WAIT_AT_SITES_PERSISTENCE_6_H,
                        WAIT_AT_SITES_PERSISTENCE_0_H,
                        (
                            "How much more following sites (persistence) emits than following sites, put off up "
                            "to 6 h (persistence)"
                        ),
                    ),
                    (
                        WAIT_AT_SITES_PERSISTENCE_12_H,
                        WAIT_AT_SITES_PERSISTENCE_0_H,
                        (
                            "How much more following sites (persistence) emits than following sites, put off up "
                            "to 12 h (persistence)"
                        ),
                    ),
                    (
                        WAIT_AT_SITES_PERSISTENCE_24_H,
                        WAIT_AT_SITES_PERSISTENCE_0_H,
                        (
                            "How much more following sites (persistence) emits than following sites, put off up "
                            "to 24 h (persistence)"
                        ),
                    ),
                ),
            ),
            start=1,
        )
    ),
    *(
        Claim(
            f"lecsa-{k}",
            "driver",
            text,
            "not in a paper",
            percent_more("carbon_g", "LECSA, carbon", against, where={"idle": idle}),
            "order",
            SIGN,
            unit="%",
        )
        for k, (idle, against, text) in numbered(
            ("5 % idle", "LECSA", "How much more LECSA emits than LECSA, carbon"),
            ("40 % idle", "LECSA", "How much more LECSA emits than LECSA, carbon"),
            (
                "5 % idle",
                WAIT_AT_SITES_0_H,
                "How much more following sites (perfect forecast) emits than LECSA, carbon",
            ),
            (
                "40 % idle",
                WAIT_AT_SITES_0_H,
                "How much more following sites (perfect forecast) emits than LECSA, carbon",
            ),
        )
    ),
]

EXPLANATIONS = [
    Explanation(
        ("hour-10", "hour-11", "hour-12", "hour-15", "hour-16"),
        (
            "Idle hosts stay on while tasks wait, and the run lasts longer: 50 h without waiting, 56, 60 and 69 h "
            "with a slack of 6, 12 and 24 h. Grams of busy hosts fall all the same (42.6 kg; 36.4, 35.8, 34.9), "
            "those of idle hosts rise by more (33.8 kg; 40.5, 43.0, 49.1). The scheduler weighs the tasks' grams "
            "alone."
        ),
        (
            (
                "idle == '40 % idle' and scheduler in ('XSufferage', 'Wait(max_delay_s=86400.0)', 'Wait, "
                "persistence(max_delay_s=86400.0)') and replicate == 0"
            ),
        ),
    ),
    Explanation(
        ("both-9", "both-10", "both-11", "both-12", "both-13", "both-14", "both-15", "both-16"),
        (
            "As around XSufferage: from 51 h at once to 74 h with a slack of 24 h, grams of busy hosts fall from "
            "23.2 to 19.4 kg, those of idle hosts rise from 42.0 to 58.7. Following sites has taken most of what "
            "there is to save already."
        ),
        (
            (
                "idle == '40 % idle' and scheduler in ('Wait at sites(max_delay_s=0.0)', 'Wait at "
                "sites(max_delay_s=86400.0)') and replicate == 0"
            ),
        ),
    ),
    Explanation(
        ("both-1", "both-2", "both-5", "both-6"),
        (
            "With a slack of 3 and 6 h the grams of busy hosts do not fall (23.2 kg at once; 23.7 and 23.3; with "
            "persistence 24.4; 24.9 and 24.8), and idle hosts cost 0.1 to 0.5 kg more. Each start is chosen as if "
            "its task ran at the best site, but six hosts there are few: at once, as after 3 or 6 h, 45 % of the "
            "tasks run elsewhere, and while they run the best site has 177 g/kWh at once, 177 after 3 h, 174 after "
            "6 h (first four bags): there is little to wait for."
        ),
        (
            (
                "idle == '5 % idle' and scheduler in ('Wait at sites(max_delay_s=0.0)', 'Wait at "
                "sites(max_delay_s=10800.0)', 'Wait at sites(max_delay_s=21600.0)') and replicate == 0"
            ),
        ),
    ),
    Explanation(
        ("lecsa-3", "lecsa-4"),
        (
            "LECSA packs the tasks onto few hosts: its run lasts 266 h, where following sites takes 51, and it "
            "uses the grams of the hour in which it decides, not of those in which the tasks run. Grams of busy "
            "hosts are 28.3 kg beside 23.2."
        ),
        ("scheduler in ('LECSA, carbon', 'Wait at sites(max_delay_s=0.0)') and replicate == 0",),
    ),
]
