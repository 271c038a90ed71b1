/* kernel.c - kernels as objects.
 *
 * A kernel is made on one thread and run and freed on others: its count is atomic, the rest does
 * not change after compile.
 */
#include "jit/backend/backend.h"
#include "jit/float_mode.h"

void kernel_run(const Kernel *k, void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const FloatMode mode = float_mode();
	float_mode_set(mode | FLUSH_SUBNORMALS);
	k->run(buf, env, begin, end);
	float_mode_set(mode);
}

Kernel *kernel_new(const Backend *b, Error *err)
{
	Kernel *k = mem_zalloc(sizeof *k);
	if (!k) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	k->backend = b;
	k->shape.parts = 1;
	k->refs = 1;
	return k;
}

/* The part that is a call is all of its phase. */
static bool call_phase_sound(const KernelShape *s)
{
	int64_t phase = s->call.phase;
	if (!s->call.kind)
		return true;
	if (!s->threads || phase < 0 || phase >= KERNEL_PHASES - 1)
		return false;
	int64_t begin = phase ? s->later[phase - 1] : 0;
	return (s->later[phase] ? s->later[phase] : s->parts) == begin + 1 && (!phase || begin);
}

bool kernel_shape_sound(const KernelShape *s)
{
	int64_t begin = 0;
	int k = 0;
	for (; k < KERNEL_PHASES && s->later[k]; begin = s->later[k++])
		if (s->later[k] <= begin)
			return false;
	return call_phase_sound(s) && k < KERNEL_PHASES && begin < s->parts && s->threads >= 0 &&
	       s->blocks >= 0 && (!s->blocks || (s->parts - begin) % s->blocks == 0) &&
	       s->scratch < SIZE_MAX / 2 && s->shared < SIZE_MAX / 2 && s->block < SIZE_MAX / 2;
}

int kernel_sizes(Kernel *k, const Subgraph *sub, Error *err)
{
	k->bytes = mem_alloc((size_t)(sub->ninput + sub->nmember) * sizeof *k->bytes);
	if (!k->bytes)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	k->ninput = k->nbuf = sub->ninput;
	for (int i = 0; i < sub->ninput; i++)
		k->bytes[i] = tensor_bytes(sub->input[i]);
	for (int m = 0; m < sub->nmember; m++)
		if (sub->stored[m])
			k->bytes[k->nbuf++] = tensor_bytes(sub->member[m]);
	if (!call_inside(&k->shape.call, k->ninput, k->nbuf, k->bytes, k->shape.shared))
		return error_set(err, RICCI_EFORMAT,
				 "a kernel's call of a library is none, or leaves its tensors");
	return 0;
}

KernelGrid kernel_grid(const Kernel *k, int phase)
{
	int64_t begin = 0, end = 0;
	kernel_phase(k, phase, &begin, &end);
	return (KernelGrid){.blocks = {(unsigned)(end - begin), 1, 1},
			    .threads = {(unsigned)k->shape.threads, 1, 1},
			    .block_memory = k->shape.block};
}

Kernel *kernel_ref(Kernel *k)
{
	__atomic_add_fetch(&k->refs, 1, __ATOMIC_RELAXED);
	return k;
}

void kernel_unref(Kernel *k)
{
	if (!k || __atomic_sub_fetch(&k->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (k->module)
		k->backend->release(k->module);
	kernel_unref(k->whole);
	mem_free(k->fewer);
	mem_free(k->source);
	mem_free(k->bytes);
	mem_free(k);
}
