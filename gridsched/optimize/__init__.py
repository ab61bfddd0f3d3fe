"""What is possible at best: bounds that no schedule can beat."""
