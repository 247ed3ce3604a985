"""Files written whole or not at all, progress, plots, memory maps."""
