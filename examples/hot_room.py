"""A model of a room beside a simulation: above 45 degrees it limits the power, and below 42 it lifts the limit."""

import math

from gridsched import Cluster, Host, Platform, PState, Scenario, Simulation, make_tasks

STEP_S, OUTSIDE, HOT, COOL, LIMIT_W = 60.0, 20.0, 45.0, 42.0, 500.0
#: Joules that warm the room by a degree, and watts that leave it for each degree above the outside.
CAPACITY_J, LOSS_W = 20e3, 25.0

hosts = tuple(Host(f"n{k}", (PState(1e9, idle_w=50.0, epsilon_w=60.0, busy_w=200.0),)) for k in range(4))
nodes = Platform(hosts, (Cluster("room", (0, 1, 2, 3)),), name="four nodes")
jobs = make_tasks([600e9] * 16, width=1, requested_time_s=600.0)
temperature, hottest, is_limited = OUTSIDE, OUTSIDE, False
with Simulation(Scenario(nodes, jobs, "easy_backfilling"), most_tasks=1) as simulation:
    while not simulation.done:
        simulation.until(simulation.now + STEP_S)
        watts = simulation.state.power.draw_w
        temperature += STEP_S * (watts - LOSS_W * (temperature - OUTSIDE)) / CAPACITY_J
        hottest = max(hottest, temperature)
        if temperature > HOT and not is_limited:
            simulation.set_limit(LIMIT_W)
            is_limited = True
            print(f"{simulation.now:6g} s  {temperature:.1f} degrees, limit {LIMIT_W:g} W")
        elif temperature < COOL and is_limited:
            simulation.set_limit(math.inf)
            is_limited = False
            print(f"{simulation.now:6g} s  {temperature:.1f} degrees, no limit")
        if simulation.now == 1800.0:
            print(f"{simulation.now:6g} s  job {simulation.submit(300e9, width=1, requested_time_s=300.0)} comes")
    found = simulation.finish().summary()
print(f"makespan {found['makespan_s']:g} s, {found['energy_model_j'] / 1e3:.1f} kJ, {hottest:.1f} degrees at most")
