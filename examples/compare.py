"""Compare three schedulers on environment 2 of the LECSA paper."""

from gridsched import BagOfTasks, Scenario, generate_bag, run

bag = generate_bag(BagOfTasks(tasks=144, mean_flops=5e6, heterogeneity=0.5, seed=1))
for scheduler in ("wq", "min_min", "lecsa"):
    result = run(Scenario("platforms/lecsa_env2.xml", bag, scheduler))
    found = result.summary()
    print(f"{scheduler:8} {found['makespan_s']:7.1f} s {found['energy_j'] / 1e9:6.2f} GJ")
