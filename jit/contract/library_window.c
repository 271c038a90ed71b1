/* library_window.c - a contraction as a vendor library's convolution, or the gradient of one.
 *
 * Input: a contraction, which of its operands are copied. Output: the call, in what order copies and sums are.
 * One operand, the image, is read in windows: some of its dimensions have an index of the result's and a reduced one,
 * X[s*p + d*r - c]. It sees these two by their coordinate s*p + d*r only, which stands for both in its value and
 * conditions; where the result is put back in, the same nodes have to come out. Conditions on a coordinate alone are
 * padding. Which kind of call it is follows from signs and sizes: where r is subtracted it is the gradient of the data;
 * else the shorter of both is the filter's, which the other operand has, or the result (gradient of the weights). All
 * other axes are, by the tensors that they are in, images, channels, result channels or groups: one of each, once axes
 * that are one in all tensors are one. More that are no channels are dimensions with windows of one element.
 * Left alone: strides where both are dilated, too; windows over quotients; axes that an operand lacks (depthwise). */
#include "jit/contract/library_grid.h"

#include <string.h>

typedef struct Window {
	Node *own, *reduced; /* an axis of the image's and the result's, one of both operands' */
	int64_t of_own, of_reduced;
	int64_t lo; /* the coordinate where `at` is 0 */
	Node *at;   /* runs over the coordinates that there are */
} Window;

/* Roles beside windows: axes of the image and the result, of the other operand and the result, of both operands, of
 * all. */
enum { ROLE_IMAGE, ROLE_OTHER, ROLE_REDUCED, ROLE_GROUP, ROLES };

typedef struct Windows {
	GridCall *g;
	int image; /* which operand */
	int n;
	Window window[CALL_WINDOWS];
	IndexGroup rest[ROLES]; /* without the windows' axes */
	bool rounded;		/* both operands, to the same 16 bits */
	CallKind kind;
} Windows;

/* The roles of dimensions 0 and 1 of A, the image, B and D; to which of them groups belong. Of images there may be
 * several. */
static const int roles_of[CALL_KINDS][CALL_TENSORS][2] = {
	[CALL_FORWARD] = {{ROLE_IMAGE, ROLE_REDUCED},
			  {ROLE_OTHER, ROLE_REDUCED},
			  {ROLE_IMAGE, ROLE_OTHER}},
	[CALL_DATA] = {{ROLE_IMAGE, ROLE_REDUCED},
		       {ROLE_REDUCED, ROLE_OTHER},
		       {ROLE_IMAGE, ROLE_OTHER}},
	[CALL_WEIGHTS] = {{ROLE_REDUCED, ROLE_IMAGE},
			  {ROLE_REDUCED, ROLE_OTHER},
			  {ROLE_OTHER, ROLE_IMAGE}},
};

static int group_dimension(CallKind kind, int tensor)
{
	return tensor == call_roles(kind)[ROLE_W] ? 0 : 1;
}

/* ---- windows */

/* The axis of the group that e has; *n: how many. */
static Node *axis_in(const IndexGroup *group, Node *e, int *n)
{
	Node *found = NULL;
	*n = 0;
	for (int k = 0; k < group->naxis; k++)
		if (node_has(e, group->axis[k])) {
			found = group->axis[k];
			++*n;
		}
	return found;
}

/* A dimension of a read of the image; false: a window that is none of a convolution's. */
static bool window_see(Windows *w, Node *dim)
{
	const Contract *c = w->g->c;
	int nown, nreduced;
	Window new = {.own = axis_in(w->image == OF_A ? &c->m : &c->n, dim, &nown),
		      .reduced = axis_in(&c->k, dim, &nreduced)};
	if (!nown || !nreduced)
		return true;
	const Affine a = affine_of(c->ir, dim);
	new.of_own = affine_coefficient(&a, new.own);
	new.of_reduced = affine_coefficient(&a, new.reduced);
	if (a.n != 2 || nown > 1 || nreduced > 1 || new.of_own <= 0 || !new.of_reduced)
		return false;
	int64_t by = int_gcd(new.of_own, new.of_reduced);
	new.of_own /= by;
	new.of_reduced /= by;
	for (int k = 0; k < w->n; k++) {
		const Window *old = &w->window[k];
		if (old->own == new.own || old->reduced == new.reduced)
			return old->own == new.own && old->reduced == new.reduced &&
			       old->of_own == new.of_own && old->of_reduced == new.of_reduced;
	}
	if (w->n == CALL_WINDOWS || (new.of_own > 1 && new.of_reduced != 1))
		return false;
	w->window[w->n++] = new;
	return true;
}

static bool windows_see(Windows *w, int operand)
{
	const Problem *p = w->g->c->p;
	w->image = operand;
	for (int k = 0; k < p->nread; k++)
		for (int d = 0; d < p->read[k].rank; d++)
			if (node_has(w->g->operand[operand].value, p->read[k].read) &&
			    !window_see(w, p->read[k].dim[d]))
				return false;
	return true;
}

/* One operand has windows, whose coordinates run over all that indices give. */
static bool windows_find(Windows *w)
{
	const Contract *c = w->g->c;
	if (!windows_see(w, OF_A))
		return false;
	int of_a = w->n;
	if (!windows_see(w, OF_B) || !w->n || (of_a && w->n > of_a))
		return false;
	w->image = of_a ? OF_A : OF_B;
	for (int k = 0; k < w->n; k++) {
		Window *x = &w->window[k];
		int64_t own = x->of_own * (axis_extent(x->own) - 1);
		int64_t reduced = x->of_reduced * (axis_extent(x->reduced) - 1);
		x->lo = reduced < 0 ? reduced : 0;
		x->at = tree_axis(c->t, own + (reduced < 0 ? -reduced : reduced) + 1);
	}
	return true;
}

static CallKind kind_find(const Windows *w)
{
	double own = 1, reduced = 1;
	int falling = 0;
	for (int k = 0; k < w->n; k++) {
		own *= (double)axis_extent(w->window[k].own);
		reduced *= (double)axis_extent(w->window[k].reduced);
		falling += w->window[k].of_reduced < 0;
	}
	if (falling)
		return falling == w->n ? CALL_DATA : CALL_NONE;
	return own < reduced ? CALL_WEIGHTS : CALL_FORWARD;
}

/* ---- coordinates */

/* e where the coordinates alone are given: one of a window's axes makes up for them, the other is 0. */
static Node *at_coordinates(const Windows *w, Node *e)
{
	Ir *ir = w->g->c->ir;
	Node *from[2 * CALL_WINDOWS], *to[2 * CALL_WINDOWS];
	for (int k = 0; k < w->n; k++) {
		const Window *x = &w->window[k];
		bool own = x->of_own == 1;
		from[2 * k] = own ? x->own : x->reduced;
		to[2 * k] = node_add(ir, x->at, node_int(ir, x->lo));
		from[2 * k + 1] = own ? x->reduced : x->own;
		to[2 * k + 1] = node_int(ir, 0);
	}
	return node_replace(ir, e, 2 * w->n, from, to);
}

/* Is it e again, at the coordinates of the windows' axes? */
static bool is_at(const Windows *w, Node *e, Node *coordinates)
{
	Ir *ir = w->g->c->ir;
	Node *from[CALL_WINDOWS], *to[CALL_WINDOWS];
	for (int k = 0; k < w->n; k++) {
		const Window *x = &w->window[k];
		from[k] = x->at;
		to[k] = node_sub(ir,
				 node_add(ir, node_scale(ir, x->own, x->of_own),
					  node_scale(ir, x->reduced, x->of_reduced)),
				 node_int(ir, x->lo));
	}
	return node_replace(ir, coordinates, w->n, from, to) == e;
}

/* A condition on the coordinate of one window, no other axis: where it holds. */
static bool window_padded(const Windows *w, Node *cond, int64_t *lo, int64_t *hi)
{
	const Contract *c = w->g->c;
	Node *from = NULL, *to = NULL;
	int at = -1;
	for (int k = 0; k < c->p->naxis; k++)
		if (node_has(cond, c->p->axis[k]))
			return false;
	for (int k = 0; k < w->n; k++)
		if (node_has(cond, w->window[k].at)) {
			if (at >= 0)
				return false;
			at = k;
			from = node_int(c->ir, lo[k]);
			to = node_int(c->ir, hi[k]);
		}
	if (at < 0 || !cond_interval(c->ir, cond, w->window[at].at, &from, &to) ||
	    !node_is_const(from) || !node_is_const(to))
		return false;
	lo[at] = from->u.i;
	hi[at] = to->u.i;
	return lo[at] < hi[at];
}

/* Coordinates run over what is no padding; the image's value and other conditions are of these. */
static bool image_at_coordinates(Windows *w)
{
	Operand *f = &w->g->operand[w->image];
	int64_t lo[CALL_WINDOWS], hi[CALL_WINDOWS];
	int kept = 0;
	for (int k = 0; k < w->n; k++) {
		lo[k] = 0;
		hi[k] = axis_extent(w->window[k].at);
	}
	if (!is_at(w, f->value, at_coordinates(w, f->value)))
		return false;
	for (int k = 0; k < f->nguard; k++) {
		Node *cond = at_coordinates(w, f->guard[k]);
		if (!is_at(w, f->guard[k], cond))
			return false;
		if (!window_padded(w, cond, lo, hi))
			f->guard[kept++] = f->guard[k];
	}
	f->nguard = kept;
	for (int k = 0; k < w->n; k++) {
		w->window[k].lo += lo[k];
		w->window[k].at = tree_axis(w->g->c->t, hi[k] - lo[k]);
	}
	f->value = at_coordinates(w, f->value);
	for (int k = 0; k < kept; k++)
		f->guard[k] = at_coordinates(w, f->guard[k]);
	return true;
}

/* What makes the image zero need not be asked of the other operand, if only that reads inside. */
static void other_guards(Windows *w)
{
	const Contract *c = w->g->c;
	const Operand *image = w->image == OF_A ? &c->a : &c->b;
	Operand *f = &w->g->operand[1 - w->image];
	int kept = 0;
	for (int k = 0; k < f->nguard; k++) {
		bool asked = false;
		for (int j = 0; j < image->nguard; j++)
			asked |= image->guard[j] == f->guard[k];
		if (!asked || !reads_inside(c->ir, f->value))
			f->guard[kept++] = f->guard[k];
	}
	f->nguard = kept;
}

static void rest_find(Windows *w)
{
	const Contract *c = w->g->c;
	const IndexGroup *of[ROLES] = {w->image == OF_A ? &c->m : &c->n,
				       w->image == OF_A ? &c->n : &c->m, &c->k, &c->batch};
	for (int role = 0; role < ROLES; role++)
		for (int k = 0; k < of[role]->naxis; k++) {
			Node *axis = of[role]->axis[k];
			bool mine = false;
			for (int j = 0; j < w->n; j++)
				mine |= w->window[j].own == axis || w->window[j].reduced == axis;
			if (!mine)
				w->rest[role].axis[w->rest[role].naxis++] = axis;
		}
}

/* ---- orders of copies and sums */

/* The window's axis that one of the call's tensors has. */
static Node *window_axis(const Window *x, int tensor)
{
	return tensor == CALL_A ? x->at : tensor == CALL_B ? x->reduced : x->own;
}

/* Are channels contiguous where there is memory already? Elsewhere tensor cores want them to be. */
static bool channels_last(const Windows *w)
{
	const GridCall *g = w->g;
	for (int x = 0; x < CALL_TENSORS; x++) {
		const IndexGroup *channel = &w->rest[roles_of[w->kind][x][1]];
		if (!call_lies(g, g->of[x]))
			continue;
		for (int k = 0; k < channel->naxis; k++)
			if (call_stride(g, g->of[x], channel->axis[k]) == 1)
				return true;
		for (int k = 0; k < w->n; k++)
			if (call_stride(g, g->of[x], window_axis(&w->window[k], x)) == 1)
				return false;
	}
	return w->rounded;
}

/* A role's axes in one order for all tensors: that of the first which has them in memory already. */
static void role_add(const Windows *w, Places *s, int role)
{
	const GridCall *g = w->g;
	int tensor = g->of[CALL_D];
	for (int x = 0; x < CALL_TENSORS; x++)
		if (call_lies(g, g->of[x]) &&
		    (role == ROLE_GROUP || roles_of[w->kind][x][0] == role ||
		     roles_of[w->kind][x][1] == role)) {
			tensor = g->of[x];
			break;
		}
	places_add(g, s, &w->rest[role], tensor);
}

static void windows_add(const Windows *w, Places *s, int tensor)
{
	for (int k = 0; k < w->n; k++)
		s->axis[s->naxis++] = window_axis(&w->window[k], tensor);
}

static bool places_make(Windows *w)
{
	GridCall *g = w->g;
	Places all[CALL_TENSORS] = {{0}};
	bool last = channels_last(w);
	for (int x = 0; x < CALL_TENSORS; x++) {
		Places *s = &all[x];
		int group = group_dimension(w->kind, x);
		if (call_lies(g, g->of[x]))
			continue;
		for (int d = 0; d < 2; d++) {
			if (d && last)
				windows_add(w, s, x);
			if (group == d)
				role_add(w, s, ROLE_GROUP);
			role_add(w, s, roles_of[w->kind][x][d]);
		}
		if (!last)
			windows_add(w, s, x);
		if (places_count(s) > GRID_SUMS)
			return false;
	}
	for (int x = 0; x < CALL_TENSORS; x++)
		g->place[g->of[x]] = all[x];
	return true;
}

/* ---- the call */

/* A dimension of windows; of a whole one there are no windows. */
typedef struct Spatial {
	CallWindow window;
	int64_t extent[CALL_TENSORS], stride[CALL_TENSORS];
} Spatial;

/* The window's numbers, as far as the call can have them. */
static bool window_numbers(const Windows *w, const Window *x, Spatial *s)
{
	const int *role = call_roles(w->kind);
	int64_t image = s->extent[role[ROLE_X]], filter = s->extent[role[ROLE_W]];
	int64_t map = s->extent[role[ROLE_Y]];
	CallWindow *c = &s->window;
	c->stride = w->kind == CALL_WEIGHTS ? x->of_reduced : x->of_own;
	c->dilation = w->kind == CALL_WEIGHTS ? x->of_own : x->of_reduced;
	c->before = x->lo;
	if (w->kind == CALL_DATA) {
		c->dilation = -c->dilation;
		c->before = -c->before;
	}
	/* As much padding behind as before where that makes no more windows: most engines want that. */
	int64_t most = image + 2 * c->before - c->dilation * (filter - 1) - 1;
	c->after = most >= 0 && most / c->stride + 1 == map
			   ? c->before
			   : c->stride * (map - 1) + c->dilation * (filter - 1) + 1 - image -
				     c->before;
	return c->before >= 0 && c->after >= 0;
}

static bool spatial_make(const Windows *w, const Window *x, Spatial *s)
{
	bool good = true;
	for (int k = 0; k < CALL_TENSORS; k++) {
		Node *axis = window_axis(x, k);
		s->extent[k] = axis_extent(axis);
		s->stride[k] = call_stride(w->g, w->g->of[k], axis);
		good = good && s->stride[k] > 0;
	}
	return good && window_numbers(w, x, s);
}

/* Images of another dimension: each is a window of its own. */
static Spatial spatial_images(const Windows *w, const Dimension *d)
{
	Spatial s = {.window = {1, 1, 0, 0}};
	for (int k = 0; k < CALL_TENSORS; k++) {
		s.stride[k] = d->stride[w->g->of[k]];
		s.extent[k] = s.stride[k] ? d->extent : 1;
	}
	return s;
}

/* The dimension becomes number k of the call's tensor, or its next outer part. */
static bool dimension_put(Windows *w, int tensor, int k, const Dimension *d)
{
	CallTensor *t = &w->g->call.tensor[tensor];
	int64_t stride = d->stride[w->g->of[tensor]];
	if (stride <= 0 || (t->stride[k] && stride != t->extent[k] * t->stride[k]))
		return false;
	t->stride[k] = t->stride[k] ? t->stride[k] : stride;
	t->extent[k] *= d->extent;
	return true;
}

/* All dimensions of a role but the windows. Images of which there are several dimensions: the outermost is the
 * images', others are added to the spatial ones. */
static bool role_put(Windows *w, int role, int *n, Spatial *spatial)
{
	const GridCall *g = w->g;
	bool images = role == roles_of[w->kind][CALL_A][0];
	const Dimension *first = NULL;
	for (int k = 0; k < g->ndim; k++)
		if (g->dim[k].role == role &&
		    (!first || g->dim[k].stride[g->of[CALL_A]] > first->stride[g->of[CALL_A]]))
			first = &g->dim[k];
	for (int k = 0; k < g->ndim; k++) {
		const Dimension *d = &g->dim[k];
		if (d->role != role || d == first)
			continue;
		if (!images || *n == CALL_WINDOWS)
			return false;
		spatial[(*n)++] = spatial_images(w, d);
	}
	for (int x = 0; x < CALL_TENSORS && first; x++)
		for (int k = 0; k < 2; k++) {
			bool mine = role == ROLE_GROUP ? group_dimension(w->kind, x) == k
						       : roles_of[w->kind][x][k] == role;
			if (mine && !dimension_put(w, x, k, first))
				return false;
		}
	return true;
}

/* The spatial dimensions in one order for all tensors, that of the image, and strides for those of one element. */
static void spatial_put(Windows *w, int n, Spatial *spatial)
{
	KernelCall *c = &w->g->call;
	for (int k = 1; k < n; k++)
		for (int j = k; j > 0 && spatial[j - 1].stride[CALL_A] < spatial[j].stride[CALL_A];
		     j--) {
			Spatial s = spatial[j];
			spatial[j] = spatial[j - 1];
			spatial[j - 1] = s;
		}
	c->windows = n;
	for (int x = 0; x < CALL_TENSORS; x++) {
		CallTensor *t = &c->tensor[x];
		int64_t whole = 1;
		for (int k = 0; k < n; k++) {
			c->window[k] = spatial[k].window;
			t->extent[2 + k] = spatial[k].extent[x];
			t->stride[2 + k] = spatial[k].stride[x];
		}
		for (int k = 0; k < n + 2; k++)
			whole = t->extent[k] * t->stride[k] > whole ? t->extent[k] * t->stride[k]
								    : whole;
		for (int k = 0; k < n + 2; k++)
			t->stride[k] = t->stride[k] ? t->stride[k] : whole;
	}
}

/* Has it no gaps, in any order of dimensions? */
static bool is_dense(const CallTensor *t)
{
	int64_t last = 0, count = 1;
	for (int k = 0; k < CALL_RANK; k++) {
		last += (t->extent[k] - 1) * t->stride[k];
		count *= t->extent[k];
	}
	return last + 1 == count;
}

static bool call_make(Windows *w)
{
	GridCall *g = w->g;
	Spatial spatial[CALL_WINDOWS] = {{.extent = {0}}};
	int n = 0;
	bool good = true;
	g->ndim = 0;
	call_begin(g, w->kind);
	for (; n < w->n && good; n++)
		good = spatial_make(w, &w->window[n], &spatial[n]);
	for (int role = 0; role < ROLES && good; role++)
		good = dimensions_add(g, role, &w->rest[role]);
	dimensions_merge(g);
	/* Groups come last: channels are within them. */
	for (int role = 0; role < ROLES && good; role++)
		good = role_put(w, role, &n, spatial);
	if (good)
		spatial_put(w, n, spatial);
	/* cuDNN wants that of filters. */
	return good && is_dense(&g->call.tensor[call_roles(w->kind)[ROLE_W]]);
}

/* With operands of that type: into the result, or into sums. */
static bool results_find(Windows *w, Type type, bool direct)
{
	GridCall *g = w->g;
	if (!call_operands(g, type))
		return false;
	if (direct && !call_direct(g))
		return false;
	if (!direct)
		call_sums(g);
	return g->library->multiplies(type, g->type[OF_D]) && places_make(w) && call_make(w);
}

/* What has been rounded to 16 bits is multiplied so where the result has them, too; else as what is added up. */
bool window_find(GridCall *g)
{
	const Contract *c = g->c;
	const Type type[] = {call_type(c), c->p->acc};
	Windows w = {.g = g, .rounded = type[0] != type[1]};
	bool found = false;
	if (!windows_find(&w) || !(w.kind = kind_find(&w)) || !image_at_coordinates(&w))
		return false;
	other_guards(&w);
	rest_find(&w);
	g->of[CALL_A] = w.image;
	g->of[CALL_B] = 1 - w.image;
	g->of[CALL_D] = OF_D;
	for (int k = 0; k < 2 * COUNT(type) && !found; k++)
		found = results_find(&w, type[k / 2], k % 2 == 0);
	g->call.rounded = w.rounded;
	g->calls = found;
	return found;
}
