/* progress.c - one line that is drawn over and over on a terminal.
 * Invariant: nothing is written unless the stream is a terminal; progress_clear leaves an empty
 * line behind. */
#include "nn/training/internal.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

Progress progress_start(FILE *out)
{
	return (Progress){.out = out && isatty(fileno(out)) ? out : NULL};
}

static void duration(char *s, size_t n, double seconds)
{
	long t = seconds < 0 ? 0 : seconds > 1e8 ? 100000000 : (long)(seconds + 0.5);
	if (t >= 3600)
		snprintf(s, n, "%ld:%02ld:%02ld", t / 3600, t / 60 % 60, t % 60);
	else
		snprintf(s, n, "%ld:%02ld", t / 60, t % 60);
}

void progress_show(Progress *p, const Bar *b)
{
	double now = clock_seconds();
	if (!p->out || (p->drawn && b->done < b->total && now - p->shown < 0.1))
		return;
	p->shown = now;
	p->drawn = true;
	struct winsize size;
	int width = ioctl(fileno(p->out), TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
	char left[32] = "--:--", whole[48] = "", speed[64] = "", tail[240];
	double rate = b->seconds > 0 ? (double)(b->done - b->first) / b->seconds : 0;
	if (rate > 0)
		duration(left, sizeof left, (double)(b->total - b->done) / rate);
	if (rate > 0 && b->all > 0) {
		memcpy(whole, "/", 2);
		duration(whole + 1, sizeof whole - 1, (double)(b->total - b->done + b->all) / rate);
	}
	if (b->unit)
		snprintf(speed, sizeof speed, " %.0f %s/s", rate, b->unit);
	int ntail = snprintf(tail, sizeof tail, " %3d%% %s%s ETA %s%s",
			     b->total ? (int)(100 * b->done / b->total) : 100, b->values, speed,
			     left, whole);
	int room = width - 1 - (int)strlen(b->label) - 3 - ntail;
	int bar = room < 3 ? 0 : room > 40 ? 40 : room;
	int full = b->total ? (int)(bar * b->done / b->total) : bar;
	char fill[48];
	memset(fill, '#', sizeof fill);
	memset(fill + full, '.', sizeof fill - (size_t)full);
	fprintf(p->out, "\r%s [%.*s]%.*s\033[K", b->label, bar, fill, width > 1 ? width - 1 : 0,
		tail);
	fflush(p->out);
}

void progress_clear(Progress *p)
{
	if (!p->drawn)
		return;
	fputs("\r\033[K", p->out);
	fflush(p->out);
	p->drawn = false;
}
