"""`python -m holdfast_faults` is the command `holdfast-faults`."""

from holdfast_faults.cli import main

if __name__ == "__main__":
    main()
