# Language, warnings and the floating-point contract (docs/numerics.md), for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# -O2 and not -O3: the kernels are unrolled by hand, and the rest gains nothing (docs/performance.md).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1" CACHE STRING "" FORCE)

# Test programs spend their time in the layers, which are at the level above; at -O1 they compile in two thirds of the time. Not -O0:
# of an inline function that both have, the linker takes the one of the test program.
set(STET_TEST_FLAGS "-O1" CACHE STRING "Flags of the files of test programs, behind those of the layers")
set(STET_OUTER_FLAGS "-O1" CACHE STRING "Flags of what computes no numbers (server, lab, cli), behind those of the other layers")

option(STET_WERROR "Treat warnings as errors" OFF)
option(STET_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
set(STET_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined or thread")

# The contract: no contraction by the compiler, no reassociation. Checked again in src/base/contract.h.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CXX>:-fno-fast-math>)
foreach(flag -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${flag}>)
endforeach()
# g++ 12 sees overlapping copies inside its own std::string (GCC bug 105329).
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
if(STET_WERROR)
  add_compile_options(-Werror)
endif()
if(STET_SANITIZE)
  add_compile_options(-fsanitize=${STET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${STET_SANITIZE})
endif()

find_program(STET_CCACHE ccache)
if(STET_CCACHE AND NOT DEFINED ENV{CCACHE_DISABLE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STET_CCACHE})
endif()
