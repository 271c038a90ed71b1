/* test_alphabet.c - a net of texts is continued with the alphabet that it was trained on: its
 * checkpoint holds it, other texts are read by it, and what does not fit says so; memory that ends. */
#include "tests/memory_check.h"
#include "tests/nn/folder.h"

#include <ricci_nn.h>
#include <string.h>

enum { BATCH = 2, LENGTH = 3 };
static char trained[400]; /* the checkpoint */

static const char *text_file(const char *name, const char *text)
{
	static char path[4][400];
	static int k;
	k = (k + 1) % 4;
	snprintf(path[k], sizeof path[k], "%s", in_folder(name));
	FILE *f = fopen(path[k], "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
	return path[k];
}

/* A training of one step on d; resume: a checkpoint or NULL. */
static int train(ricci_data *d, const char *resume, const char *checkpoint, int vocabulary)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_I32, 2, (int64_t[]){BATCH, LENGTH});
	ricci_tensor *y = ricci_input(g, "y", RICCI_I32, 2, (int64_t[]){BATCH, LENGTH});
	ricci_tensor *z = ricci_embedding_layer(
		x, "e", &RICCI_EMBEDDING(.count = vocabulary, .out = vocabulary));
	ricci_fed target = {y, "targets"};
	ricci_training t = RICCI_TRAINING(.samples = x, .input = &target, .ninput = 1, .train = d,
					  .loss = ricci_cross_entropy(z, y), .output = z,
					  .checkpoint = checkpoint, .resume = resume,
					  .steps = resume ? 2 : 1, .epochs = 9);
	ricci_adam(t.loss, ricci_learning_rate(g, 0.1), 0.9, 0.999, 1e-8);
	int status = ricci_train(&t, NULL);
	ricci_graph_free(g);
	return status;
}

static void check_saved(void)
{
	static const uint32_t want[] = {'\n', 'a', 'b', 'c', 0xe9};
	uint32_t got[8] = {0};
	ricci_data *d = ricci_text(text_file("first", "abc\nabacab\xc3\xa9"
						      "bacabba\n"),
				   &RICCI_READING(.length = LENGTH));
	CHECK_REPORT(!train(d, NULL, trained, 5), "%s", ricci_error_message());
	CHECK_INT(ricci_saved_alphabet(trained, got, 8), 5);
	CHECK(!memcmp(got, want, sizeof want));
	got[1] = 7;
	CHECK_INT(ricci_saved_alphabet(trained, got, 1), 5);
	CHECK_INT(got[1], 7);
	CHECK_INT(ricci_saved_alphabet(trained, NULL, 0), 5);
	CHECK_REPORT(!train(d, trained, NULL, 5), "%s", ricci_error_message());
	ricci_data_free(d);
}

/* Another text, with fewer characters. */
static void check_other(void)
{
	const char *path = text_file("second", "cabaca\xc3\xa9"
					       "abacacab");
	ricci_data *own = ricci_text(path, &RICCI_READING(.length = LENGTH));
	ricci_data *d = ricci_text(path, &RICCI_READING(.length = LENGTH, .alphabet_of = trained));
	int32_t token[LENGTH];
	int n;
	CHECK_REPORT(d != NULL, "%s", ricci_error_message());
	CHECK_INT(ricci_data_get(d, "samples", 0, token, sizeof token), 0);
	CHECK(token[0] == 3 && token[1] == 1 && token[2] == 2);
	ricci_text_alphabet(d, &n);
	CHECK_INT(n, 5);
	CHECK_INT(ricci_text_encode(d, "b\xc3\xa9\n", token, LENGTH), 3);
	CHECK(token[0] == 2 && token[1] == 4 && token[2] == 0);
	CHECK_REPORT(!train(d, trained, NULL, 5), "%s", ricci_error_message());
	CHECK_INT(train(own, trained, NULL, 5), RICCI_EVALUE);
	CHECK_REPORT(
		strstr(ricci_error_message(),
		       "first.h5 was trained on a text of another alphabet (5 characters; this "
		       "one has 4); read this text with its alphabet: .alphabet_of"),
		"%s", ricci_error_message());
	ricci_data_free(own);
	ricci_data_free(d);
}

static void refused(const char *path, ricci_reading how, const char *want)
{
	ricci_data *d = ricci_text(path, &how);
	CHECK(!d);
	CHECK_REPORT(strstr(ricci_error_message(), want), "%s", ricci_error_message());
	ricci_data_free(d);
}

static void check_errors(void)
{
	char plain[400];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *p = ricci_param(g, "p", RICCI_F32, 0, NULL, ricci_constant(1));
	ricci_tensor *y = ricci_op(g, "Y[] = P[]", p);
	ricci_session *s = ricci_session_new(g, NULL, 0, 1, &y);
	snprintf(plain, sizeof plain, "%s", in_folder("plain.h5"));
	CHECK_INT(ricci_save(s, y, plain, NULL, 0), 0);
	CHECK_INT(ricci_saved_alphabet(plain, NULL, 0), 0);
	const char *path = text_file("third", "abax\xe2\x82\xac");
	refused(path, RICCI_READING(.length = 2, .alphabet_of = trained),
		"third: the character U+0078 at byte 3 is not in the alphabet of ");
	refused(path, RICCI_READING(.length = 2, .alphabet_of = plain),
		"plain.h5 holds no alphabet: ricci_train saves one where it trains on a text");
	refused(path, RICCI_READING(.length = 2, .alphabet_of = path), "is not a whole HDF5 file");
	refused(path, RICCI_READING(.length = 2, .alphabet_of = trained, .bytes = 1),
		"bytes are tokens by themselves, they take no alphabet_of");
	CHECK_INT(ricci_saved_alphabet(NULL, NULL, 0), RICCI_EINVAL);
	CHECK_INT(ricci_saved_alphabet(in_folder("none"), NULL, 0), RICCI_EIO);
	ricci_session_free(s);
	ricci_graph_free(g);
}

static int read_text(void)
{
	static char path[400];
	snprintf(path, sizeof path, "%s", in_folder("second"));
	ricci_data *d = ricci_text(path, &RICCI_READING(.length = LENGTH, .alphabet_of = trained));
	ricci_data_free(d);
	return d ? 0 : strstr(ricci_error_message(), "out of memory") ? RICCI_ENOMEM : -1;
}

int main(void)
{
	CHECK(folder_make("alphabet"));
	snprintf(trained, sizeof trained, "%s", in_folder("first.h5"));
	check_saved();
	check_other();
	check_errors();
	check_memory(read_text);
	folder_remove();
	return check_done();
}
