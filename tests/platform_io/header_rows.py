"""Header rows in the manner of real Green500 and TOP500 lists, with the columns they mean.

Each entry: header cells, then the canonical columns as {column: (position, factor or None)}.
"""

from __future__ import annotations

K, M, G, T = 1e3, 1e6, 1e9, 1e12

HEADER_ROWS: list[tuple[list[str], dict[str, tuple[int, float | None]]]] = [
    (
        ["Green500_Rank", "Site", "Computer", "Mflops/Watt", "Power", "Top500_Rank", "How"],
        {
            "rank": (0, 1.0),
            "site": (1, 1.0),
            "computer": (2, 1.0),
            "efficiency_flop_per_j": (3, M),
            "power_w": (4, K),
            "top500_rank": (5, 1.0),
        },
    ),
    (
        ["Green 500 Rank", "Computer", "mflops/watt", "total_power", "Top 500 Rank"],
        {
            "rank": (0, 1.0),
            "computer": (1, 1.0),
            "efficiency_flop_per_j": (2, M),
            "power_w": (3, K),
            "top500_rank": (4, 1.0),
        },
    ),
    (
        ["green500_rank", "Computer", "mf/watt", " Total Power (kW)", "TOP500 Rank", "how", ""],
        {
            "rank": (0, 1.0),
            "computer": (1, 1.0),
            "efficiency_flop_per_j": (2, M),
            "power_w": (3, K),
            "top500_rank": (4, 1.0),
        },
    ),
    (
        ["Green500 Rank", "Computer", "MFW", "Power_(kw)", "top500rank"],
        {
            "rank": (0, 1.0),
            "computer": (1, 1.0),
            "efficiency_flop_per_j": (2, M),
            "power_w": (3, K),
            "top500_rank": (4, 1.0),
        },
    ),
    (
        ["Green500_Rank", "Mflops Per Watt", "Rmax", "Power"],
        {"rank": (0, 1.0), "efficiency_flop_per_j": (1, M), "rmax_flops": (2, None), "power_w": (3, K)},
    ),
    (
        ["green500_rank", "Mflops_Per_Watt", "Rmax", "Rpeak", "Power", "year", "Year"],
        {
            "rank": (0, 1.0),
            "efficiency_flop_per_j": (1, M),
            "rmax_flops": (2, None),
            "rpeak_flops": (3, None),
            "power_w": (4, K),
            "year": (5, 1.0),
        },
    ),
    (
        [
            "Rank",
            "TOP500 Rank",
            "Name",
            "Total Cores",
            "Rmax [TFlop/s]",
            "Rpeak [TFlop/s]",
            "Power (kW)",
            "Power Source",
            "Power Effeciency [GFlops/Watts]",
            "Power Source",
            "Accelerator/Co-Processor Cores",
            "Measured Cores",
        ],
        {
            "rank": (0, 1.0),
            "top500_rank": (1, 1.0),
            "name": (2, 1.0),
            "cores": (3, 1.0),
            "rmax_flops": (4, T),
            "rpeak_flops": (5, T),
            "power_w": (6, K),
            "efficiency_flop_per_j": (8, G),
        },
    ),
    (
        ["Rank", "TOP500 Rank", "Energy Efficiency [GFlops/Watts]", "Efficiency (%)"],
        {"rank": (0, 1.0), "top500_rank": (1, 1.0), "efficiency_flop_per_j": (2, G)},
    ),
    (
        ["Rank", "TOP500 Rank", "Power Efficiency [GFlops/Watts]", "Effeciency (%)"],
        {"rank": (0, 1.0), "top500_rank": (1, 1.0), "efficiency_flop_per_j": (2, G)},
    ),
    (  # a TOP500 list: its Rank is the TOP500 rank
        ["Rank", "Previous Rank", "First Rank", "Processors", "RMax", "RPeak", "Processor"],
        {
            "rank": (0, 1.0),
            "top500_rank": (0, 1.0),
            "cores": (3, 1.0),
            "rmax_flops": (4, None),
            "rpeak_flops": (5, None),
        },
    ),
    (  # a Green500 list whose Rank is the TOP500 rank
        ["Green500_Rank", "Rank", "Previous Rank", "Mflops/Watt", "Power"],
        {"rank": (0, 1.0), "top500_rank": (1, 1.0), "efficiency_flop_per_j": (3, M), "power_w": (4, K)},
    ),
    (  # the first of two names is the computer where no column has that name
        ["green500_rank", "Mflops/Watt", "name", "Total Cores", "Name"],
        {"rank": (0, 1.0), "efficiency_flop_per_j": (1, M), "computer": (2, 1.0), "cores": (3, 1.0), "name": (4, 1.0)},
    ),
    (
        ["Rank", "Cores", "Total Cores", "Rmax (PFlop/s)", "Total Power [W]", "Mflops/Watt"],
        {
            "rank": (0, 1.0),
            "top500_rank": (0, 1.0),
            "cores": (2, 1.0),
            "rmax_flops": (3, 1e15),
            "power_w": (4, 1.0),
            "efficiency_flop_per_j": (5, M),
        },
    ),
]
