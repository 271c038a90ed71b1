/* error.c - errors are values; the first one wins. What public calls say is kept for each thread. */
#include "core/base/base.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

static _Thread_local char last[ERROR_TEXT];

const char *ricci_error_message(void)
{
	return last;
}

const char *ricci_strerror(int code)
{
	static const char *const text[] = {
		[0] = "no error",
		[-RICCI_ENOMEM] = "out of memory",
		[-RICCI_ESYNTAX] = "the text of an equation is wrong",
		[-RICCI_ESHAPE] = "shapes, ranges or indices do not fit",
		[-RICCI_ETYPE] = "data types do not fit",
		[-RICCI_EINVAL] = "a wrong argument",
		[-RICCI_EIO] = "a file could not be read or written",
		[-RICCI_EFORMAT] = "a file is not what it should be",
		[-RICCI_ECOMPILE] = "no kernel could be made",
		[-RICCI_EVALUE] = "data outside the range that the graph needs of it",
		[-RICCI_EUNSUPPORTED] = "not supported here",
		[-RICCI_EINTERNAL] = "an internal error",
		[-RICCI_EDEVICE] = "a device or its driver failed",
	};
	return code > 0 || code <= -COUNT(text) ? "no error of Ricci's" : text[-code];
}

void message_vprint(char *s, size_t room, const char *fmt, va_list ap)
{
	int n = vsnprintf(s, room, fmt, ap);
	if (n >= 0 && (size_t)n >= room && room >= sizeof "...")
		memcpy(s + room - sizeof "...", "...", sizeof "...");
}

void message_print(char *s, size_t room, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	message_vprint(s, room, fmt, ap);
	va_end(ap);
}

int error_set(Error *e, int code, const char *fmt, ...)
{
	if (!e || e->code)
		return code;
	e->code = code;
	va_list ap;
	va_start(ap, fmt);
	message_vprint(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	if (e->tell)
		error_tell(e);
	return code;
}

int error_tell(const Error *e)
{
	if (e->code)
		snprintf(last, sizeof last, "%s", e->text);
	return e->code;
}

void error_clear(Error *e)
{
	e->code = 0;
	e->text[0] = 0;
}

int struct_take(void *to, size_t size, const void *from, const char *type, Error *e)
{
	size_t given;
	memcpy(&given, from, sizeof given);
	if (given < sizeof given || given > 1 << 16) {
		char maker[32] = "";
		for (size_t i = 0; type[i] && i + 1 < sizeof maker; i++)
			maker[i] = (char)toupper(type[i]);
		return error_set(e, RICCI_EINVAL, "%s.size is %zu, not sizeof(%s): begin with %s()",
				 type, given, type, maker);
	}
	for (size_t i = size; i < given; i++)
		if (((const char *)from)[i])
			return error_set(e, RICCI_EINVAL,
					 "%s: a field is set that this version of Ricci (%s) does "
					 "not know",
					 type, RICCI_VERSION);
	memset(to, 0, size);
	memcpy(to, from, given < size ? given : size);
	memcpy(to, &size, sizeof size);
	return 0;
}

void struct_give(void *to, const void *from, size_t size)
{
	size_t given;
	memcpy(&given, to, sizeof given);
	memcpy(to, from, given < size ? given : size);
	memcpy(to, &given, sizeof given);
}
