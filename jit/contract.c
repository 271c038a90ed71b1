/* contract.c - generalised contractions: packed panels around a micro-kernel. */
#include "jit/internal.h"

int contract_offers(Problem *p, const Target *target, int room, Schedule *out)
{
	(void)p, (void)target, (void)room, (void)out;
	return 0;
}

int lower_contract(Problem *p, const Schedule *s, const Target *target, const Dialect *d,
		   Error *err)
{
	(void)p, (void)s, (void)target, (void)d;
	return error_set(err, RICCI_EUNSUPPORTED, "schedule: tensorise is not there yet");
}
