/* float_mode.h - the calling thread's rules for floats, as the processor keeps them: a word with a bit
 * that makes 0 of subnormal results (x86: FTZ of MXCSR; 64-bit ARM: FZ of FPCR, which also takes subnormal
 * operands for 0). Processors without such a bit compute as ever. */
#ifndef JIT_FLOAT_MODE_H
#define JIT_FLOAT_MODE_H

#if defined(__x86_64__)
#include <xmmintrin.h>

typedef unsigned FloatMode;
enum { FLUSH_SUBNORMALS = _MM_FLUSH_ZERO_ON };

static inline FloatMode float_mode(void)
{
	return _mm_getcsr();
}

static inline void float_mode_set(FloatMode mode)
{
	_mm_setcsr(mode);
}
#elif defined(__aarch64__)
#include <stdint.h>

typedef uint64_t FloatMode;
enum { FLUSH_SUBNORMALS = 1 << 24 };

static inline FloatMode float_mode(void)
{
	FloatMode mode;
	__asm__ volatile("mrs %0, fpcr" : "=r"(mode));
	return mode;
}

static inline void float_mode_set(FloatMode mode)
{
	__asm__ volatile("msr fpcr, %0" ::"r"(mode));
}
#else
typedef unsigned FloatMode;
enum { FLUSH_SUBNORMALS = 0 };

static inline FloatMode float_mode(void)
{
	return 0;
}

static inline void float_mode_set(FloatMode mode)
{
	(void)mode;
}
#endif
#endif
