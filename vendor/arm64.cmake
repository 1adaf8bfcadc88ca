# Toolchain file: builds the product for arm64 on another machine, with Debian's cross compiler.
#
#   sh vendor/setup.sh --build-only --arch arm64
#   cmake -B build-arm64 -G Ninja -DCMAKE_TOOLCHAIN_FILE=vendor/arm64.cmake -DBALLAST_TESTS=OFF
#   cmake --build build-arm64 --target ballast
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(BALLAST_VENDOR_DIR ${CMAKE_CURRENT_LIST_DIR}/.src-arm64 CACHE PATH "Third-party sources, brought by vendor/setup.sh")
