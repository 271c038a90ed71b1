/* error.c - errors are values; the first one wins. */
#include "core/core.h"

#include <stdarg.h>

int error_set(Error *e, int code, const char *fmt, ...)
{
	if (!e || e->code)
		return code;
	e->code = code;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	return code;
}

void error_clear(Error *e)
{
	e->code = 0;
	e->text[0] = 0;
}
