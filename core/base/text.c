/* text.c - growing texts. A text that could not grow is marked failed and keeps what it has. */
#include "core/base/base.h"

#include <stdarg.h>
#include <string.h>

static bool text_reserve(Text *t, size_t more)
{
	if (t->failed)
		return false;
	if (t->room - t->n > more)
		return true;
	size_t room = t->room ? t->room * 2 : 256;
	while (room - t->n <= more)
		room *= 2;
	char *s = mem_realloc(t->s, room);
	if (!s) {
		t->failed = true;
		return false;
	}
	t->s = s;
	t->room = room;
	return true;
}

void text_put(Text *t, const char *s, size_t n)
{
	if (!text_reserve(t, n))
		return;
	if (n) /* s is NULL of an empty text */
		memcpy(t->s + t->n, s, n);
	t->n += n;
	t->s[t->n] = 0;
}

void text_add(Text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !text_reserve(t, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf(t->s + t->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	t->n += (size_t)n;
}

char *text_take(Text *t)
{
	if (!t->failed)
		return t->s;
	text_free(t);
	error_set(ERROR_TELL, RICCI_ENOMEM, "out of memory");
	return NULL;
}

void text_free(Text *t)
{
	mem_free(t->s);
	*t = (Text){0};
}
