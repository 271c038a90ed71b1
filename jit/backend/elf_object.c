/* elf_object.c - loads what `gcc -c` wrote, without a linker.
 *
 * Input: the bytes of a relocatable ELF64 file of this machine. Output: its code and data in
 * memory, relocated, with sections aligned as they ask (compilers keep 64-byte vector constants
 * there). The file may come from a cache that something damaged, so every offset is checked before
 * it is used. Memory: executable and constant sections, stubs and addresses of outside symbols |
 * writable sections.
 */
#include "jit/backend/backend.h"
#include "jit/symbols.h"
#include <elf.h>
#include <string.h>
#include <unistd.h>

typedef struct Object {
	const char *file;
	size_t size;
	const Elf64_Ehdr *head;
	const Elf64_Shdr *section;
	const Elf64_Sym *symbol;
	size_t nsymbol;
	const char *names;
	size_t nnames;
	uint64_t *at; /* section's offset in memory + 1; 0: not loaded */
	char *base;
	size_t stubs; /* offset of STUB bytes for each symbol: a jump, and the address that it reads
		       */
	Error *err;
} Object;

enum { STUB = 16, STUB_ADDRESS = 8 };
#define IMPOSSIBLE UINT64_MAX

static int broken(Object *o, const char *what)
{
	return error_set(o->err, RICCI_EFORMAT, "not a usable object file: %s", what);
}

static bool inside(const Object *o, uint64_t offset, uint64_t n)
{
	return offset <= o->size && n <= o->size - offset;
}

static int object_open(Object *o)
{
#if defined(__x86_64__)
	enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
	enum { MACHINE = EM_AARCH64 };
#else
	enum { MACHINE = EM_NONE };
#endif
	const Elf64_Ehdr *h = o->head = (const void *)o->file;
	if (o->size < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG))
		return broken(o, "no ELF header");
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_type != ET_REL || h->e_machine != MACHINE)
		return broken(o, "not relocatable code of this machine");
	if (h->e_shentsize != sizeof *o->section || h->e_shoff % 8 ||
	    !inside(o, h->e_shoff, (uint64_t)h->e_shnum * sizeof *o->section))
		return broken(o, "the section table is cut short");
	o->section = (const void *)(o->file + h->e_shoff);
	for (int i = 0; i < h->e_shnum; i++) {
		const Elf64_Shdr *s = o->section + i;
		if (s->sh_type != SHT_NOBITS && !inside(o, s->sh_offset, s->sh_size))
			return broken(o, "a section is cut short");
		if (s->sh_type != SHT_SYMTAB)
			continue;
		if (s->sh_link >= h->e_shnum || s->sh_offset % 8)
			return broken(o, "symbols without names");
		const Elf64_Shdr *n = o->section + s->sh_link;
		if (n->sh_type != SHT_STRTAB || !inside(o, n->sh_offset, n->sh_size) ||
		    !n->sh_size || o->file[n->sh_offset + n->sh_size - 1])
			return broken(o, "the names do not end");
		o->symbol = (const void *)(o->file + s->sh_offset);
		o->nsymbol = s->sh_size / sizeof *o->symbol;
		o->names = o->file + n->sh_offset;
		o->nnames = n->sh_size;
	}
	return o->symbol ? 0 : broken(o, "no symbols");
}

/* Is it part of the running code? Unwind tables are not: nothing is thrown through a kernel. */
static bool wanted(const Elf64_Shdr *s)
{
	return s->sh_flags & SHF_ALLOC && (s->sh_type == SHT_PROGBITS || s->sh_type == SHT_NOBITS);
}

/* Places the sections that are writable or those that are not; returns the end, or IMPOSSIBLE. */
static uint64_t place(Object *o, bool writable, uint64_t end)
{
	for (int i = 0; i < o->head->e_shnum; i++) {
		const Elf64_Shdr *s = o->section + i;
		uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
		if (!wanted(s) || !(s->sh_flags & SHF_WRITE) == writable)
			continue;
		if (align & (align - 1) || align > 4096 || s->sh_size > 1u << 28)
			return IMPOSSIBLE;
		end = (end + align - 1) & -align;
		o->at[i] = end + 1;
		end += s->sh_size;
	}
	return end;
}

static const char *symbol_name(const Object *o, const Elf64_Sym *s)
{
	return s->st_name < o->nnames ? o->names + s->st_name : "";
}

/* A symbol's address: in the file's own sections, or outside. 0 when there is none. */
static uint64_t symbol_address(const Object *o, const Elf64_Sym *s)
{
	if (s->st_shndx == SHN_UNDEF)
		return (uint64_t)(uintptr_t)jit_symbol(symbol_name(o, s));
	if (s->st_shndx == SHN_ABS)
		return s->st_value;
	if (s->st_shndx >= o->head->e_shnum || !o->at[s->st_shndx] ||
	    s->st_value > o->section[s->st_shndx].sh_size)
		return 0;
	return (uint64_t)(uintptr_t)o->base + o->at[s->st_shndx] - 1 + s->st_value;
}

/* The place of a symbol's stub; its second half is the address, so it serves as the global offset
 * table too. */
static uint64_t stub(const Object *o, size_t symbol, uint64_t address)
{
	char *p = o->base + o->stubs + symbol * STUB;
#if defined(__aarch64__)
	static const uint32_t jump[2] = {0x58000050, 0xd61f0200}; /* ldr x16, .+8; br x16 */
#else
	static const unsigned char jump[8] = {0xff, 0x25, 2,	0,
					      0,    0,	  0x66, 0x90}; /* jmp *2(%rip) */
#endif
	memcpy(p, jump, STUB_ADDRESS);
	memcpy(p + STUB_ADDRESS, &address, 8);
	return (uint64_t)(uintptr_t)p;
}

static bool fits(int64_t v, int bits)
{
	return v >= -((int64_t)1 << (bits - 1)) && v < (int64_t)1 << (bits - 1);
}

/* One relocation: p the place, s the symbol's address, a the addend. 0 or what is wrong. */
#if defined(__aarch64__)
static const char *relocate(Object *o, unsigned type, size_t symbol, char *p, uint64_t s, int64_t a)
{
	uint64_t here = (uint64_t)(uintptr_t)p, v = s + a;
	uint32_t op;
	int scale = 0;
	memcpy(&op, p, 4);
	switch (type) {
	case R_AARCH64_ABS64:
		memcpy(p, &v, 8);
		return NULL;
	case R_AARCH64_PREL64:
		v -= here;
		memcpy(p, &v, 8);
		return NULL;
	case R_AARCH64_PREL32:
		v -= here;
		memcpy(p, &v, 4);
		return fits(v, 32) ? NULL : "an address out of reach";
	case R_AARCH64_CALL26:
	case R_AARCH64_JUMP26:
		if (!fits(v - here, 28))
			v = stub(o, symbol, s);
		op = (op & 0xfc000000) | ((v - here) >> 2 & 0x3ffffff);
		break;
	case R_AARCH64_ADR_GOT_PAGE:
		v = stub(o, symbol, s) + STUB_ADDRESS; /* falls through */
	case R_AARCH64_ADR_PREL_PG_HI21:
	case R_AARCH64_ADR_PREL_PG_HI21_NC: {
		int64_t pages = (int64_t)(v >> 12) - (int64_t)(here >> 12);
		if (!fits(pages, 21))
			return "a page out of reach";
		op = (op & 0x9f00001f) | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5;
		break;
	}
	case R_AARCH64_LD64_GOT_LO12_NC:
		v = stub(o, symbol, s) + STUB_ADDRESS;
		scale = 3;
		op = (op & 0xffc003ff) | (v & 0xfff) >> scale << 10;
		break;
	case R_AARCH64_LDST128_ABS_LO12_NC:
		scale++; /* falls through */
	case R_AARCH64_LDST64_ABS_LO12_NC:
		scale++; /* falls through */
	case R_AARCH64_LDST32_ABS_LO12_NC:
		scale++; /* falls through */
	case R_AARCH64_LDST16_ABS_LO12_NC:
		scale++; /* falls through */
	case R_AARCH64_LDST8_ABS_LO12_NC:
	case R_AARCH64_ADD_ABS_LO12_NC:
		op = (op & 0xffc003ff) | (v & 0xfff) >> scale << 10;
		break;
	default:
		return "an unknown kind of relocation";
	}
	memcpy(p, &op, 4);
	return NULL;
}
#else
static const char *relocate(Object *o, unsigned type, size_t symbol, char *p, uint64_t s, int64_t a)
{
	uint64_t here = (uint64_t)(uintptr_t)p, v = s + a;
	switch (type) {
	case R_X86_64_64:
		memcpy(p, &v, 8);
		return NULL;
	case R_X86_64_PC64:
		v -= here;
		memcpy(p, &v, 8);
		return NULL;
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
		/* Outside functions may be far: the stub is near. Outside data does not exist. */
		if (!fits(v - here, 32))
			v = stub(o, symbol, s) + a;
		break;
	case R_X86_64_GOTPCREL:
	case R_X86_64_GOTPCRELX:
	case R_X86_64_REX_GOTPCRELX:
		v = stub(o, symbol, s) + STUB_ADDRESS + a;
		break;
	default:
		return "an unknown kind of relocation";
	}
	v -= here;
	if (!fits(v, 32))
		return "an address out of reach";
	memcpy(p, &v, 4);
	return NULL;
}
#endif

static size_t relocation_width(unsigned type)
{
#if defined(__aarch64__)
	return type == R_AARCH64_ABS64 || type == R_AARCH64_PREL64 ? 8 : 4;
#else
	return type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
#endif
}

static int relocate_section(Object *o, const Elf64_Shdr *r)
{
	if (r->sh_info >= o->head->e_shnum || r->sh_offset % 8)
		return broken(o, "relocations of nothing");
	const Elf64_Shdr *target = o->section + r->sh_info;
	if (!wanted(target))
		return 0;
	const Elf64_Rela *rel = (const void *)(o->file + r->sh_offset);
	for (size_t i = 0; i < r->sh_size / sizeof *rel; i++) {
		size_t k = ELF64_R_SYM(rel[i].r_info);
		size_t width = relocation_width(ELF64_R_TYPE(rel[i].r_info));
		if (k >= o->nsymbol || target->sh_size < width ||
		    rel[i].r_offset > target->sh_size - width)
			return broken(o, "a relocation outside its section");
		uint64_t s = symbol_address(o, o->symbol + k);
		if (!s)
			return error_set(o->err, RICCI_ECOMPILE,
					 "the compiled code calls %s, which kernels may not",
					 symbol_name(o, o->symbol + k));
		const char *wrong = relocate(o, ELF64_R_TYPE(rel[i].r_info), k,
					     o->base + o->at[r->sh_info] - 1 + rel[i].r_offset, s,
					     rel[i].r_addend);
		if (wrong)
			return broken(o, wrong);
	}
	return 0;
}

static int object_find(Object *o, int count, const char *const *name, void **find)
{
	for (int k = 0; k < count; k++) {
		find[k] = NULL;
		for (size_t i = 0; i < o->nsymbol && !find[k]; i++)
			if (o->symbol[i].st_shndx != SHN_UNDEF &&
			    !strcmp(symbol_name(o, o->symbol + i), name[k]))
				find[k] = (void *)(uintptr_t)symbol_address(o, o->symbol + i);
		if (!find[k])
			return error_set(o->err, RICCI_EFORMAT,
					 "not a usable object file: %s is not in it", name[k]);
	}
	return 0;
}

static Code *object_load(Object *o, int count, const char *const *name, void **find)
{
	uint64_t page = sysconf(_SC_PAGESIZE);
	uint64_t end = place(o, false, 0);
	o->stubs = (end + STUB - 1) & -(uint64_t)STUB;
	uint64_t fixed = (o->stubs + (o->nsymbol + 1) * STUB + page - 1) & -page;
	uint64_t all = end == IMPOSSIBLE ? end : place(o, true, fixed);
	if (all == IMPOSSIBLE) {
		broken(o, "a section asks for the impossible");
		return NULL;
	}
	Code *c = code_new(all, o->err);
	if (!c)
		return NULL;
	o->base = c->base;
	for (int i = 0; i < o->head->e_shnum; i++)
		if (o->at[i] && o->section[i].sh_type != SHT_NOBITS)
			memcpy(o->base + o->at[i] - 1, o->file + o->section[i].sh_offset,
			       o->section[i].sh_size);
	int bad = 0;
	for (int i = 0; i < o->head->e_shnum && !bad; i++)
		if (o->section[i].sh_type == SHT_RELA)
			bad = relocate_section(o, o->section + i);
	if (bad || object_find(o, count, name, find) || code_seal(c, fixed, o->err)) {
		code_release(c);
		return NULL;
	}
	return c;
}

Code *elf_load(const void *file, size_t n, int count, const char *const *name, void **find,
	       Error *err)
{
	Object o = {.file = file, .size = n, .err = err};
	if (object_open(&o))
		return NULL;
	o.at = mem_zalloc(((size_t)o.head->e_shnum + 1) * sizeof *o.at);
	if (!o.at) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	Code *c = object_load(&o, count, name, find);
	mem_free(o.at);
	return c;
}
