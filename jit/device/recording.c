/* recording.c - launches that are recorded once, and started again by one call of the driver.
 *
 * What was recorded has its arguments: addresses, sizes, seeds. Who keeps a recording knows when one of them
 * is another; memory of the device's own, which kernels share, is looked after here. The step of
 * random numbers is no argument (Device.step).
 */
#include "jit/device/internal.h"

struct Recording {
	Device *device;
	void *made;	     /* the driver's */
	void *shared, *step; /* the device's, when it was recorded */
};

int device_record(Device *d, uint64_t step, Error *err)
{
	if (!d->kind->record)
		return error_set(err, RICCI_EUNSUPPORTED, "%s records no launches", d->name);
	int code = device_enter(d, err);
	if (code)
		return code;
	code = step_tell(d, step, err);
	if (!code)
		code = d->kind->record(d, err);
	d->recording = !code;
	return code ? device_leave(d, code) : 0; /* else device_recorded leaves */
}

Recording *device_recorded(Device *d, bool keep, Error *err)
{
	Recording *r = keep ? mem_zalloc(sizeof *r) : NULL;
	void *made = NULL;
	if (keep && !r)
		error_set(err, RICCI_ENOMEM, "out of memory");
	int code = d->kind->recorded(d, r != NULL, &made, err);
	d->recording = false;
	if (r)
		*r = (Recording){d, made, d->shared, d->step};
	device_leave(d, 0);
	if (code) {
		mem_free(r);
		r = NULL;
	}
	return r;
}

int device_replay(Device *d, const Recording *r, uint64_t step, Error *err)
{
	int code = device_enter(d, err);
	if (code)
		return code;
	code = step_tell(d, step, err);
	if (!code && (d->shared != r->shared || d->step != r->step))
		return device_leave(d, 1);
	return device_leave(d, code ? code : d->kind->replay(d, r->made, err));
}

void recording_free(Recording *r)
{
	if (r && !device_enter(r->device, NULL)) {
		r->device->kind->forget(r->device, r->made);
		device_leave(r->device, 0);
	}
	mem_free(r);
}
