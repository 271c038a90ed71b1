/* info.c - what Ricci knows of this machine, and the kernels kept on disk. */
#include "tools/tool.h"

#include <errno.h>
#include <string.h>

static void info_device(Text *out)
{
	const Target *t = target_host();
	DeviceModel d = device_model(0);
	text_add(out, "isa: %s\nvector: %d bytes\n", t->key, t->vector_bytes);
	text_add(out, "caches: %zu KiB, %zu KiB, %zu KiB\n", t->l1 >> 10, t->l2 >> 10, t->l3 >> 10);
	text_add(out, "cc flags: %s\n", t->flags);
	text_add(out, "measured: %.3g GB/s, %.3g Gflop/s, %.3g us a launch\n", d.pd * 1e-9,
		 d.pc * 1e-9, d.launch * 1e6);
}

/* Devices that sessions can live on; what is missing for others. */
static void info_devices(Text *out)
{
	for (int k = 0; device_kinds[k]; k++) {
		const DeviceKind *kind = device_kinds[k];
		char why[256] = "";
		int n = kind->count(why, sizeof why);
		if (!n)
			text_add(out, "device %s: none, %s\n", kind->name, why);
		for (int i = 0; i < n; i++) {
			text_add(out, kind->launch ? "device %s:%d: " : "device %s: ", kind->name,
				 i);
			kind->describe(i, out, NULL);
			text_add(out, "\n");
		}
	}
}

int command_info(const Options *o)
{
	if (o->operand.n)
		die(STATUS_USAGE, "ricci info takes no '%s'", o->operand.item[0].value);
	Text out = {0};
	Error e = {0};
	CacheReport r = {0};
	text_add(&out, "ricci: %s\n", ricci_version());
	info_device(&out);
	for (int k = 0; backends[k]; k++) {
		char why[256] = "";
		if (backends[k]->available(why, sizeof why))
			text_add(&out, "backend %s: %s\n", backends[k]->name,
				 backends[k]->version ? backends[k]->version() : "yes");
		else
			text_add(&out, "backend %s: no, %s\n", backends[k]->name, why);
	}
	info_devices(&out);
	for (int k = 0; library_name(k); k++) {
		char why[256] = "";
		if (library_available(k, why, sizeof why))
			text_add(&out, "library %s: %s\n", library_name(k), library_version(k));
		else
			text_add(&out, "library %s: no, %s\n", library_name(k), why);
	}
	const char *folder = cache_folder();
	if (!folder)
		text_add(&out, "cache: none\n");
	else if (cache_verify(false, &r, &e))
		text_add(&out, "cache: %s, %s\n", folder, e.text);
	else
		text_add(&out, "cache: %s, %d kernels, %lld bytes\n", folder, r.entries,
			 (long long)r.bytes);
	report_flush(&out);
	return STATUS_OK;
}

int command_cache(const Options *o)
{
	Error e = {0};
	CacheReport r = {0};
	const char *what = o->operand.n == 1 ? o->operand.item[0].value : "";
	if (!strcmp(what, "list")) {
		check(cache_list(stdout, &e), &e);
	} else if (!strcmp(what, "verify")) {
		check(cache_verify(false, &r, &e), &e);
		printf("%d kernels, %d broken, %lld bytes\n", r.entries, r.broken,
		       (long long)r.bytes);
	} else if (!strcmp(what, "clear")) {
		check(cache_clear(&r, &e), &e);
		printf("%d kernels removed, %lld bytes\n", r.entries, (long long)r.bytes);
	} else {
		die(STATUS_USAGE, "ricci cache takes list, verify or clear");
	}
	if (fflush(stdout))
		die(STATUS_WRONG, "standard output: %s", strerror(errno));
	return r.broken ? STATUS_WRONG : STATUS_OK;
}
