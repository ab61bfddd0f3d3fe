"""How LECSA compares in the 30 settings of the paper's table 3: against the best of the others.

For each setting the mean of three bags; every figure is 100 (other - LECSA) / LECSA, where other
is the best of the five other schedulers. Printed beside it: what the paper printed.
"""

from gridsched import BagOfTasks, Scenario, generate_bag, read_platform, run

OTHERS = ("wq", "wqr", "sufferage", "xsufferage", "dynamic_fpltf")
BAGS = ((29, 25e6), (144, 5e6), (720, 1e6))
SEEDS = (1, 2, 3)
# energy and performance difference of table 3, in the order of the rows
PRINTED = (
    (141.06, -16.64),
    (143.23, -17.93),
    (155.03, -17.81),
    (148.32, -17.92),
    (150.24, -17.94),
    (120.79, -1.95),
    (31.96, 2.16),
    (35.94, 7.99),
    (41.64, 8.58),
    (50.66, 9.21),
    (118.00, -10.70),
    (5.07, 0.27),
    (11.63, 0.45),
    (17.05, 0.72),
    (27.47, 0.14),
    (182.90, -27.78),
    (173.07, -38.58),
    (157.85, -42.12),
    (83.61, -40.17),
    (106.55, -42.60),
    (102.78, -54.75),
    (84.87, -30.33),
    (66.59, -17.42),
    (45.72, -1.34),
    (35.54, -3.11),
    (100.00, -2.73),
    (77.86, -1.55),
    (59.42, -1.71),
    (34.72, 0.67),
    (23.20, 0.39),
)


METRICS = ("energy_j", "makespan_s", "busy_time_s")


def means(platform, bags, scheduler):
    """Return the mean of each metric over the bags, by the reference driver."""
    rows = [run(Scenario(platform, bag, scheduler, driver="reference")).summary() for bag in bags]
    return [sum(row[name] for row in rows) / len(rows) for name in METRICS]


printed = iter(PRINTED)
print("| env | tasks | H | energy | paper | makespan | busy time | paper's performance |")
print("|---|---|---|---|---|---|---|---|")
for environment in (1, 2):
    platform = read_platform(f"platforms/lecsa_env{environment}.xml")
    for tasks, flops in BAGS:
        for spread in (0, 0.25, 0.5, 0.75, 1):
            recipe = BagOfTasks(tasks=tasks, mean_flops=flops, heterogeneity=spread)
            bags = [generate_bag(recipe.model_copy(update={"seed": seed})) for seed in SEEDS]
            best = map(min, zip(*(means(platform, bags, other) for other in OTHERS), strict=True))
            lecsa = means(platform, bags, "lecsa")
            energy, makespan, busy = (f"{100 * (b - own) / own:+.1f} %" for b, own in zip(best, lecsa, strict=True))
            e_paper, p_paper = (f"{value:+.2f} %" for value in next(printed))
            cells = (environment, tasks, f"{spread:.0%}", energy, e_paper, makespan, busy, p_paper)
            print("|", " | ".join(map(str, cells)), "|", flush=True)
