"""Run the command line as a module."""

from service.cli import main

main()
