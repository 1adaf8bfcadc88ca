#include "base/relro.h"

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Called for the program first, then for its libraries, if it has any: theirs are their loader's business.
 * Whole pages only: the linker makes the segment end where one does, and nothing else lies before it in its first.
 */
static int protect(struct dl_phdr_info *info, size_t size, void *context)
{
	struct error *err = context;
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t begin = ((uintptr_t)info->dlpi_addr + segment->p_vaddr) & ~(page_bytes - 1);
		uintptr_t end = ((uintptr_t)info->dlpi_addr + segment->p_vaddr + segment->p_memsz) & ~(page_bytes - 1);

		if (segment->p_type != PT_GNU_RELRO || end <= begin)
			continue;
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): addresses of segments are numbers */
		if (mprotect((void *)begin, end - begin, PROT_READ) != 0) {
			error_set_errno(err, errno, "making relocated data read-only");
			return -1;
		}
	}
	return 1;
}

bool relro_protect(struct error *err)
{
	return dl_iterate_phdr(protect, err) >= 0;
}
