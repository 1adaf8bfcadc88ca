#include "protogen/protogen.h"

int main(int argc, char **argv)
{
	return protogen_run(argc, argv);
}
