# Targets for the sources in vendor/.src. Compiled ones exist once per variant, like our own layers (see "The two
# variants" in the top CMakeLists.txt); their own build systems can't do that, so the sources are listed here.

add_library(jsmn INTERFACE)
target_include_directories(jsmn SYSTEM INTERFACE ${BALLAST_VENDOR_DIR}/jsmn/usr/include)

set(llhttp_dir ${BALLAST_VENDOR_DIR}/llhttp/usr/src/llhttp)
file(GLOB llhttp_sources ${llhttp_dir}/src/*.c)

function(add_llhttp target)
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${llhttp_sources})
  target_include_directories(${target} SYSTEM PUBLIC ${llhttp_dir}/include)
endfunction()

# The parser alone; without its emitter. Its configure script would only tell it its version. It has no hooks for memory.
set(libyaml_dir ${BALLAST_VENDOR_DIR}/libyaml)
set(libyaml_sources ${libyaml_dir}/src/api.c ${libyaml_dir}/src/parser.c ${libyaml_dir}/src/reader.c
                    ${libyaml_dir}/src/scanner.c)

function(add_libyaml target)
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${libyaml_sources})
  target_include_directories(${target} SYSTEM PUBLIC ${libyaml_dir}/include)
  target_compile_definitions(${target} PRIVATE YAML_VERSION_MAJOR=0 YAML_VERSION_MINOR=2 YAML_VERSION_PATCH=5
                                               YAML_VERSION_STRING="0.2.5" _GNU_SOURCE)
  # Its assertions name their files; a compiler cache that was told a base folder compiles by relative paths.
  cmake_path(RELATIVE_PATH PROJECT_SOURCE_DIR BASE_DIRECTORY ${CMAKE_BINARY_DIR} OUTPUT_VARIABLE way_to_sources)
  target_compile_options(${target} PRIVATE -ffile-prefix-map=${way_to_sources}=.)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE -include ${PROJECT_SOURCE_DIR}/vendor/config/libyaml_memory.h)
  if(NOT instrumentation)
    target_compile_options(${target} PRIVATE -Os)
  endif()
endfunction()

set(mbedtls_dir ${BALLAST_VENDOR_DIR}/mbedtls)
file(GLOB mbedtls_sources ${mbedtls_dir}/library/*.c)
if(BALLAST_FUZZ)
  # Arithmetic has no branches that an input could find its way through, and instrumented a handshake takes half a second.
  file(GLOB mbedtls_arithmetic ${mbedtls_dir}/library/bignum*.c ${mbedtls_dir}/library/ec*.c ${mbedtls_dir}/library/sha*.c)
  set_source_files_properties(${mbedtls_arithmetic} PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
endif()

function(add_mbedtls target)
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${mbedtls_sources})
  target_include_directories(${target} SYSTEM PUBLIC ${mbedtls_dir}/include)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/vendor/config)
  # Not named mbedtls_config.h: the stock file of that name would be found first, silently.
  target_compile_definitions(${target} PUBLIC MBEDTLS_CONFIG_FILE="mbedtls_features.h")
  if(NOT instrumentation)
    # A third smaller than -O2, and its hot loops are AES-NI and bignum assembly anyway.
    target_compile_options(${target} PRIVATE -Os)
  endif()
endfunction()

# Without its file functions (gz*); packing and unpacking in memory only.
set(zlib_dir ${BALLAST_VENDOR_DIR}/zlib)
file(GLOB zlib_sources ${zlib_dir}/*.c)

function(add_zlib target)
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${zlib_sources})
  target_include_directories(${target} SYSTEM PUBLIC ${zlib_dir})
  target_compile_definitions(${target} PUBLIC Z_SOLO ZLIB_CONST)
endfunction()

foreach(variant IN LISTS variants)
  add_llhttp(llhttp${variant})
  add_libyaml(libyaml${variant})
  target_link_libraries(libyaml${variant} PRIVATE base${variant})
  add_mbedtls(mbedtls${variant})
  add_zlib(zlib${variant})
  foreach(library llhttp libyaml mbedtls zlib)
    use_toolchain(${library}${variant})
  endforeach()
endforeach()
