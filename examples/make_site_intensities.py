"""Made hourly carbon intensities: python make_site_intensities.py SEED DAYS [FOUR HOST PATTERNS] > sites.csv

Intensity of site s in hour h of the run [g/kWh], never below 10, rounded to 1 g/kWh:

    mean_s (1 + wind_s z_s(h) - sun_s max(0, sin(pi (t - 6) / 12)) + evening_s exp(-((t - 20) / 2)^2))

t is the local time of day, h plus the site's time zone, modulo 24; z_s is an autoregressive process
of order 1, of mean 0 and variance 1, with the correlation 0.97 from hour to hour (0.48 from day to
day), drawn by numpy.random.default_rng([SEED, s]). The numbers are made; none is of a real grid.
"""

import sys

import numpy as np

HOUR_S = 3600
CORRELATION = 0.97
#: mean [g/kWh], share of wind, of sun and of the evening's peak, and time zone [h]
SITES = {
    "coal": (550.0, 0.08, 0.05, 0.10, 1),
    "wind": (220.0, 0.55, 0.05, 0.15, 0),
    "sun": (330.0, 0.10, 0.70, 0.30, 2),
    "far_sun": (360.0, 0.10, 0.70, 0.30, -8),
}


def intensities(seed: int, days: int) -> dict[str, np.ndarray]:
    """Return the intensities of each site, hour by hour [g/kWh]."""
    hours = np.arange(24 * days)
    found = {}
    for s, (name, (mean, wind, sun, evening, zone)) in enumerate(SITES.items()):
        rng = np.random.default_rng([seed, s])
        z = rng.standard_normal(len(hours))
        for h in hours[1:]:
            z[h] = CORRELATION * z[h - 1] + np.sqrt(1 - CORRELATION**2) * z[h]
        t = (hours + zone) % 24
        shape = 1 + wind * z - sun * np.maximum(0, np.sin(np.pi * (t - 6) / 12))
        shape += evening * np.exp(-(((t - 20) / 2) ** 2))
        found[name] = np.maximum(10, np.rint(mean * shape))
    return found


if __name__ == "__main__":
    seed, days = map(int, sys.argv[1:3])
    print("# made, of no real grid: examples/make_site_intensities.py", *sys.argv[1:])
    print("host,time_s,g_per_kwh")
    for name, values in zip(sys.argv[3:] or SITES, intensities(seed, days).values(), strict=True):
        for hour, value in enumerate(values):
            print(f"{name},{HOUR_S * hour},{value:.0f}")
