"""Random programs, damage and faults until something fails: see docs/testing.md.

make fuzz                                   all parts, until ctrl-C
make fuzz MINUTES=30 JOBS=4                 no new trial after half an hour; four processes at once
make fuzz PART=programs SEED=1703           one trial: this is how a failure is repeated
"""

import sys

from driver import main

if __name__ == "__main__":
    sys.exit(main())
