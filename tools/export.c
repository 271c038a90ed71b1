/* export.c - the command `export`: a checkpoint's net as C, or as a module. Input: Options. Output:
 * files. */
#include "tools/tool.h"
#include <ricci_nn.h>

int command_export(const Options *o)
{
	if (o->operand.n != 1)
		die(STATUS_USAGE, "ricci export takes one checkpoint");
	if (o->module && (o->output.n || o->weights))
		die(STATUS_USAGE, "--module FILE holds everything: %s belongs to C",
		    o->weights ? "--weights" : "-o");
	if (!o->module && o->output.n != 1)
		die(STATUS_USAGE, "ricci export needs -o NET.c or --module FILE");
	const char *checkpoint = o->operand.item[0].value;
	int code =
		o->module ? ricci_export_module_checkpoint(checkpoint, o->threads, o->module)
			  : ricci_export_checkpoint(checkpoint, o->output.item[0].name, o->weights);
	if (code)
		die(STATUS_WRONG, "%s", ricci_error_message());
	return STATUS_OK;
}
