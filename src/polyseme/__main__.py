"""`python -m polyseme` is the `polyseme` program."""

from polyseme.cli import main

main()
