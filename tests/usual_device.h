/* usual_device.h - the device that tests partition for: fusion decides the same on every machine. */
#ifndef USUAL_DEVICE_H
#define USUAL_DEVICE_H

#include "jit/jit.h"

static const DeviceModel usual_device = {.pd = 20e9,
					 .pd_far = 20e9,
					 .pc = 50e9,
					 .launch = 2e-6,
					 .pd_core = 160e9,
					 .core = 1 << 20,
					 .threads = 8};

#endif
