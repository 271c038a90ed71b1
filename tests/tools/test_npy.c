/* test_npy.c - .npy files: every type, both orders, versions, byte orders; and everything that is
 * none: cut short anywhere, any byte changed, hostile headers. */
#include "tests/check.h"
#include "tools/npy.c"

#include <stdlib.h>
#include <unistd.h>

static char path[64];

static void file_write(const void *data, size_t n)
{
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(data, 1, n, f) != n || fclose(f))
		perror(path);
}

static size_t file_read(void *data, size_t room)
{
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(data, 1, room, f) : 0;
	if (f)
		fclose(f);
	return n;
}

/* A file from a header's text and data. */
static void file_make(int version, const char *header, const void *data, size_t ndata)
{
	unsigned char b[1024] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0};
	size_t n = 8, len = strlen(header);
	b[n++] = len & 255;
	b[n++] = len >> 8 & 255;
	if (version > 1)
		n += 2;
	memcpy(b + n, header, len);
	memcpy(b + n + len, data, ndata);
	file_write(b, n + len + ndata);
}

static const char *reading(Npy *a)
{
	static Error e;
	e = (Error){0};
	if (!npy_read(path, a, &e))
		return "";
	return e.text;
}

static void test_round_trip(void)
{
	const int64_t shape[] = {3, 1, 5};
	unsigned char data[3 * 5 * 8];
	for (int type = 0; type < RICCI_NTYPES; type++) {
		for (int rank = 0; rank <= 3; rank++) {
			size_t n = type_size((Type)type);
			for (int d = 0; d < rank; d++)
				n *= (size_t)shape[d];
			for (size_t i = 0; i < n; i++)
				data[i] = type == RICCI_BOOL ? i & 1 : (unsigned char)(i * 37 + 11);
			Error e = {0};
			Npy a = {0};
			CHECK_INT(npy_write(path, (Type)type, rank, shape, data, &e), 0);
			CHECK_STR(reading(&a), "");
			CHECK_INT(a.type, type);
			CHECK_INT(a.rank, rank);
			CHECK_INT(a.bytes, n);
			CHECK(a.data && !memcmp(a.data, data, n) &&
			      !memcmp(a.shape, shape, (size_t)rank * sizeof *shape));
			buffer_free(a.data);
		}
	}
}

static void test_forms(void)
{
	const int16_t fortran[] = {0x3c00, 0x4200, 0x4000, 0x4400}; /* 1 3 2 4 as f16 */
	const unsigned char big[] = {0, 0, 1, 2, 255, 255, 255, 254};
	Npy a = {0};
	file_make(1, "{'descr': '<f2', 'fortran_order': True, 'shape': (2, 2), }   \n", fortran, 8);
	CHECK_STR(reading(&a), "");
	for (size_t i = 0; i < 4; i++)
		CHECK_NEAR(type_load(RICCI_F16, a.data, i), (double)i + 1, 0);
	buffer_free(a.data);
	file_make(2, "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\">i4\"}\n", big, 8);
	CHECK_STR(reading(&a), "");
	CHECK_INT(type_load_int(RICCI_I32, a.data, 0), 258);
	CHECK_INT(type_load_int(RICCI_I32, a.data, 1), -2);
	buffer_free(a.data);
	file_make(3, "{'descr':'|b1','fortran_order':False,'shape':(2,2)}", "\0\1\2\377", 4);
	CHECK_STR(reading(&a), "");
	CHECK(!memcmp(a.data, "\0\1\1\1", 4));
	buffer_free(a.data);
	/* 3 dimensions in Fortran order: element (i,j,k) holds 100 i + 10 j + k. */
	int32_t data[24], n = 0;
	for (int k = 0; k < 4; k++)
		for (int j = 0; j < 3; j++)
			for (int i = 0; i < 2; i++)
				data[n++] = 100 * i + 10 * j + k;
	file_make(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 4)}\n", data,
		  sizeof data);
	CHECK_STR(reading(&a), "");
	for (int64_t i = 0; i < 24; i++)
		CHECK_INT(type_load_int(RICCI_I32, a.data, (size_t)i),
			  100 * (i / 12) + 10 * (i / 4 % 3) + i % 4);
	buffer_free(a.data);
}

static void test_refused(void)
{
	static const struct {
		const char *header, *message;
	} bad[] = {
		{"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}",
		 "its numbers are '<c8'; f4 f8 f2 i1 u1 i4 i8 b1 and V2 (bf16) can be read"},
		{"{'descr': '', 'fortran_order': False, 'shape': (1,)}",
		 "its numbers are ''; f4 f8 f2 i1 u1 i4 i8 b1 and V2 (bf16) can be read"},
		{"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}",
		 "a type that is not one plain number"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0)}",
		 "its dimension 1 has size 0; a tensor has none of those"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
		 "its shape is too large"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
		 "its shape is too large"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}",
		 "cut short: its shape needs 4000000000000 bytes, 8 are there"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
		 "cut short: its shape needs 12 bytes, 8 are there"},
		{"{'descr': '<f4', 'fortran_order': False, "
		 "'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
		 "more than 16 dimensions"},
		{"{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (1,)}",
		 "its header has no fortran_order"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
		 "its header has no shape"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1", "its header has no shape"},
		{"{'descr': '<f4', 'fortran_order': False}",
		 "its header lacks descr, fortran_order or shape"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (2,)}",
		 "its header has two keys 'shape'"},
		{"{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}",
		 "its header has two keys 'descr'"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} and more",
		 "its header goes on behind the dictionary"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}}",
		 "its header goes on behind the dictionary"},
		{"{'order': 'K'}", "unknown key 'order' in its header"},
		{"{'descr': '<f4' 'shape': (1,)}", "its header is damaged"},
		{"{'descr", "its header is damaged"},
		{"", "its header is no dictionary"},
	};
	for (int k = 0; k < COUNT(bad); k++) {
		Npy a = {.rank = 77};
		char message[300];
		snprintf(message, sizeof message, "%s: %s", path, bad[k].message);
		file_make(1, bad[k].header, "12345678", 8);
		CHECK_STR(reading(&a), message);
		CHECK_INT(a.rank, 77);
	}
}

static void test_damage(void)
{
	const int64_t shape[] = {2, 3};
	float data[6] = {1, 2, 3, 4, 5, 6};
	unsigned char whole[256], b[256];
	Error e = {0};
	long live = mem_live();
	CHECK_INT(npy_write(path, RICCI_F32, 2, shape, data, &e), 0);
	size_t n = file_read(whole, sizeof whole);
	CHECK_INT(n % 64, sizeof data);
	for (size_t cut = 0; cut < n; cut++) {
		Npy a;
		file_write(whole, cut);
		CHECK(*reading(&a));
	}
	int accepted = 0;
	for (size_t at = 0; at < n; at++) {
		for (int bit = 0; bit < 8; bit++) {
			Npy a;
			memcpy(b, whole, n);
			b[at] ^= (unsigned char)(1 << bit);
			file_write(b, n);
			if (*reading(&a))
				continue;
			accepted++;
			CHECK(a.bytes <= n && a.data);
			buffer_free(a.data);
		}
	}
	CHECK(accepted >= 6 * 4 * 8); /* the data's own bits */
	for (long fail = 1; fail < 4; fail++) {
		Npy a;
		file_write(whole, n);
		mem_fail_at(fail);
		const char *message = reading(&a);
		mem_fail_at(0);
		if (fail < 3)
			CHECK(strstr(message, "memory") != NULL);
		else if (!*message)
			buffer_free(a.data);
	}
	CHECK_INT(mem_live(), live);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(path, sizeof path, "%.40s/ricci-npy.%ld", tmp ? tmp : "/tmp", (long)getpid());
	test_round_trip();
	test_forms();
	test_refused();
	test_damage();
	unlink(path);
	Npy a;
	CHECK(strstr(reading(&a), "No such file or directory") != NULL);
	return check_done();
}
