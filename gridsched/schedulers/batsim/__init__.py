"""Schedulers that are programs of their own and speak the protocol of Batsim 4."""
