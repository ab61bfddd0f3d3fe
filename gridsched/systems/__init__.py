"""Systems of papers and programs: each folder is one, adds itself by a `Plugin`, and may be deleted."""
