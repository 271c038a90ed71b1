#!/usr/bin/env python3
"""events.py FILE - the scalars of a TensorBoard event file, a line "step tag value" each, as the tensorboard package
reads them. Exit status 77 where the package is missing."""
import sys

try:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
except ImportError:
    sys.exit(77)

for event in EventFileLoader(sys.argv[1]).Load():
    for value in event.summary.value:
        number = value.tensor.float_val[0] if value.HasField("tensor") else value.simple_value
        print(event.step, value.tag, "%.6g" % number)
