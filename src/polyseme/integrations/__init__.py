"""Other libraries beside ours, one file each, each an optional extra."""
