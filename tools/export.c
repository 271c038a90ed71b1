/* export.c - the command `export`: a checkpoint's net as C. Input: Options. Output: files. */
#include "tools/tool.h"
#include <ricci_nn.h>

int command_export(const Options *o)
{
	if (o->operand.n != 1)
		die(STATUS_USAGE, "ricci export takes one checkpoint");
	if (o->output.n != 1)
		die(STATUS_USAGE, "ricci export needs -o NET.c");
	if (ricci_export_checkpoint(o->operand.item[0].value, o->output.item[0].name, o->weights))
		die(STATUS_WRONG, "%s", ricci_error_message());
	return STATUS_OK;
}
