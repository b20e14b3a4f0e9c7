# What a binary says about how it was made: generated/engine/build_info.h with the compiler, the flags and the commit.
#
# The commit is looked up at every build (a commit after the configuration would make a lie of it); the header changes only when the
# commit does. "unproven" where git or the repository is missing.
get_directory_property(_stet_options COMPILE_OPTIONS)
string(TOUPPER "${CMAKE_BUILD_TYPE}" _stet_type)
set(_stet_flags ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${_stet_type}} ${_stet_options})
list(FILTER _stet_flags EXCLUDE REGEX "^-W|^\\$<")
list(JOIN _stet_flags " " _stet_flags)
# Folders of the builder are nobody's business.
string(REGEX REPLACE "/[^ =;]*" "PATH" _stet_flags "${_stet_flags}")

set(STET_BUILD_INFO ${CMAKE_BINARY_DIR}/generated/engine/build_info.h)
add_custom_target(stet_build_info
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${STET_BUILD_INFO}
          "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" "-DFLAGS=${_stet_flags}" "-DTYPE=${CMAKE_BUILD_TYPE}"
          "-DVERSION=${PROJECT_VERSION}" -P ${CMAKE_SOURCE_DIR}/cmake/write_build_info.cmake
  BYPRODUCTS ${STET_BUILD_INFO}
  VERBATIM)
