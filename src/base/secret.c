#include "base/secret.h"

bool secret_equal(struct slice left, struct slice right)
{
	unsigned char difference = 0;

	if (left.length != right.length)
		return false;
	for (size_t i = 0; i < left.length; i++)
		difference = (unsigned char)(difference | (left.data[i] ^ right.data[i]));
	return difference == 0;
}
