/* test_machine.c - the figures of the machine: there, and possible. */
#include "runtime/runtime.h"
#include "tests/check.h"

static void test_flops(Pool *one, Pool *two)
{
	double f32 = machine_flops(one, RICCI_F32, 0.01), f64 = machine_flops(one, RICCI_F64, 0.01);
	double bf16 = machine_flops(one, RICCI_BF16, 0.005);
	/* However busy the machine is: figures are positive, and none runs above 10 GHz. */
	double cycle = 2 * 2 * target_host()->vector_bytes / 4;

	CHECK_REPORT(f32 > 0 && f32 < 10e9 * cycle, "f32: %g", f32);
	CHECK_REPORT(f64 > 0 && f64 < 10e9 * cycle / 2, "f64: %g", f64);
	if (target_host()->isa & (ISA_AVX512BF16 | ISA_AMX))
		CHECK(bf16 > 0);
	else
		CHECK(bf16 == 0);
	CHECK(machine_flops(two, RICCI_F32, 0.005) > 0);
}

static void test_bandwidth(Pool *one, Pool *two)
{
	double near = machine_bandwidth(one, STREAM_COPY, 16 << 10, 0.005);
	double far = machine_bandwidth(one, STREAM_COPY, 64 << 20, 0.005);

	CHECK_REPORT(near > 0 && near < 1e13, "16 KiB: %g", near);
	CHECK_REPORT(far > 0 && far < 1e13, "64 MiB: %g", far);
	CHECK(machine_bandwidth(one, STREAM_TRIAD, 1, 0.001) > 0);
	CHECK(machine_bandwidth(two, STREAM_TRIAD, 1 << 20, 0.001) > 0);
}

int main(void)
{
	Error err = {0};
	Pool *one = pool_new(1, &err), *two = pool_new(2, &err);

	if (!one || !two) {
		CHECK_REPORT(false, "%s", err.text);
	} else {
		test_flops(one, two);
		test_bandwidth(one, two);
		CHECK(machine_launch(one, 0.001) > 0 && machine_launch(two, 0.001) > 0);
	}
	pool_free(one);
	pool_free(two);
	return check_done();
}
