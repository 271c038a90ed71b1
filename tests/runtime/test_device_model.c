/* test_device_model.c - the device model: kept, and measured again by later processes. */
#include "runtime/host/folder.h"
#include "runtime/runtime.h"
#include "tests/check.h"
#include "tests/child.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char file[200]; /* the model's */

static void test_improve(void)
{
	const DeviceModel kept = {.pd = 100,
				  .pc = 100,
				  .launch = 4e-6,
				  .pd_far = 0,
				  .pd_core = 200,
				  .core = 7,
				  .near = 9};
	DeviceModel m = kept, again = kept;

	again.pd = again.pc = 120; /* as near as two measurements are */
	again.launch = 3.5e-6;
	CHECK(!device_improve(&m, &again) && m.pd == 100 && m.launch == 4e-6);
	again.launch = 2e-6;
	CHECK(device_improve(&m, &again) && m.launch == 2e-6 && m.pd == 120 && m.pd_core == 200);
	again.launch = 1.5e-6; /* a quarter, but of little */
	CHECK(!device_improve(&m, &again) && m.launch == 2e-6);
	again.pd = 300; /* a thread's own cache is no slower */
	CHECK(device_improve(&m, &again) && m.pd == 300 && m.pd_core == 300 && m.pc == 120);
	again.pd = again.pc = again.pd_core = 1; /* worse ones are left */
	again.launch = 1;
	CHECK(!device_improve(&m, &again) && m.pd == 300);
	again.pd_far = 50; /* nobody has asked for it yet */
	CHECK(!device_improve(&m, &again) && m.pd_far == 0);
	m.pd_far = 20;
	CHECK(device_improve(&m, &again) && m.pd_far == 50);
	CHECK(m.core == 7 && m.near == 9);
}

static bool see_file(void *user, const File *f)
{
	(void)user;
	if (strstr(f->name, "device-"))
		snprintf(file, sizeof file, "%s", f->name);
	return true;
}

static bool same(DeviceModel a, DeviceModel b)
{
	return a.pd == b.pd && a.pc == b.pc && a.launch == b.launch && a.pd_core == b.pd_core;
}

/* The first process: measures, keeps. */
static int measured_first(void)
{
	DeviceModel m = device_model(0);

	return m.pd > 0 && m.pc > 0 && m.launch > 0 && m.pd_core >= m.pd ? 0 : 1;
}

/* A process that finds `text`: decides with it, and leaves `count` behind; better: its rates, too. */
static int measured_again(const char *text, int count, bool better)
{
	size_t n;
	int times = 0;
	double pd = 0, found = atof(text);

	if (!folder_write(file, text, strlen(text)))
		return 2;
	DeviceModel m = device_model(0);
	device_again();
	device_again(); /* once is enough */
	char *s = folder_read(file, &n);
	if (!s || m.pd != found || !same(m, device_model(0)))
		return 3;
	if (sscanf(s, "%lf,%*[^;];%d", &pd, &times) != 2)
		times = pd > 0 ? 1 : 0;
	free(s);
	return times != count ? 4 : better ? (pd > 10 * found ? 0 : 5) : pd == found ? 0 : 6;
}

static int bad_once(void)
{
	return measured_again("1e6,1e6,0.01,0,4194304,1e6,1048576;1\n", 2, true);
}

static int bad_old(void) /* without a number */
{
	return measured_again("1e6,1e6,0.01,0,4194304,1e6,1048576\n", 2, true);
}

static int bad_far(void)
{
	return measured_again("1e6,1e6,0.01,1e6,4194304,1e6,1048576;4\n", 5, true);
}

static int bad_often(void)
{
	return measured_again("1e6,1e6,0.01,0,4194304,1e6,1048576;5\n", 5, false);
}

static int good_once(void)
{
	return measured_again("1e15,1e15,1e-9,1e15,4194304,1e15,1048576;1\n", 2, false);
}

static int given(void)
{
	setenv("RICCI_DEVICE", "1e6,1e6,0.01", 1);
	return measured_again("1e6,1e6,0.01,0,4194304,1e6,1048576;1\n", 1, false);
}

int main(void)
{
	char folder[] = "/tmp/ricci-test-XXXXXX";
	Error err = {0};

	unsetenv("RICCI_DEVICE");
	if (!mkdtemp(folder) || setenv("RICCI_CACHE", folder, 1))
		return 1;
	test_improve();
	CHECK_INT(child(measured_first), 0);
	CHECK_INT(folder_each(see_file, NULL, &err), 0);
	CHECK_STR(err.text, "");
	CHECK(*file);
	CHECK_INT(child(bad_once), 0);
	CHECK_INT(child(bad_old), 0);
	CHECK_INT(child(bad_far), 0);
	CHECK_INT(child(bad_often), 0);
	CHECK_INT(child(good_once), 0);
	CHECK_INT(child(given), 0);
	folder_remove(file);
	CHECK_INT(rmdir(folder), 0);
	return check_done();
}
