# The product is linked against musl, statically, by the machine's own gcc: a specs file swaps glibc's headers, start
# files and libraries for those in vendor/.src/musl. Everything that goes into the product links to the target `musl`.
#
# musl-gcc's own specs won't do: with them -static-pie silently makes a dynamic program, and the kernel's headers
# (epoll, eventfd, …) can't be found.

set(musl_triplet ${CMAKE_SYSTEM_PROCESSOR}-linux-musl)
set(musl_include ${BALLAST_VENDOR_DIR}/musl/usr/include/${musl_triplet})
set(musl_lib ${BALLAST_VENDOR_DIR}/musl/usr/lib/${musl_triplet})

if(NOT CMAKE_C_COMPILER_ID STREQUAL GNU)
  message(FATAL_ERROR "The release build needs gcc (its specs files); this is ${CMAKE_C_COMPILER}. "
                      "Sanitizer, fuzzing and coverage builds use glibc and may use clang.")
endif()

# Only the kernel's own headers, not the glibc headers that lie beside them.
set(kernel_headers ${CMAKE_BINARY_DIR}/kernel-headers)
file(MAKE_DIRECTORY ${kernel_headers})
foreach(name linux asm asm-generic)
  find_path(kernel_${name}_parent ${name}/types.h PATHS /usr/${CMAKE_LIBRARY_ARCHITECTURE}/include /usr/include
            /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
            NO_DEFAULT_PATH REQUIRED)
  mark_as_advanced(kernel_${name}_parent)
  if(NOT EXISTS ${kernel_headers}/${name})
    file(CREATE_LINK ${kernel_${name}_parent}/${name} ${kernel_headers}/${name} SYMBOLIC)
  endif()
endforeach()

# In a specs file a space ends a word, and a percent sign begins a directive.
foreach(path musl_include musl_lib kernel_headers)
  string(REGEX REPLACE "([\\ ])" "\\\\\\1" ${path} "${${path}}")
  string(REPLACE "%" "%%" ${path} "${${path}}")
endforeach()

# The link: a position-independent program without a dynamic loader. `-z text` makes a relocation in the code an error.
set(musl_specs ${CMAKE_BINARY_DIR}/musl.specs)
file(CONFIGURE OUTPUT ${musl_specs} @ONLY CONTENT [[
%rename cpp_options old_cpp_options

*cpp_options:
-nostdinc -isystem @musl_include@ -isystem include%s -idirafter @kernel_headers@ %(old_cpp_options)

*cc1:
%(cc1_cpu) -nostdinc -isystem @musl_include@ -isystem include%s -idirafter @kernel_headers@

*link_libgcc:
-L@musl_lib@ -L .%s

*libgcc:
libgcc.a%s %:if-exists(libgcc_eh.a%s)

*startfile:
@musl_lib@/rcrt1.o @musl_lib@/crti.o crtbeginS.o%s

*endfile:
crtendS.o%s @musl_lib@/crtn.o

*link:
-static -pie --no-dynamic-linker -z text -nostdlib

*esp_link:


*esp_options:


*esp_cpp_options:


]])

add_library(musl INTERFACE)
target_compile_options(musl INTERFACE -specs=${musl_specs} -fPIE -ffunction-sections -fdata-sections
                       -fstack-protector-strong -fstack-clash-protection
                       # Nothing unwinds the product's stack; without tables for it the program is an eighth smaller.
                       -fno-asynchronous-unwind-tables -fno-unwind-tables)
target_link_options(musl INTERFACE -specs=${musl_specs} -Wl,--gc-sections,--build-id=none,-z,relro,-z,now,-z,noexecstack)
