# cmake -DSOURCE= -DOUTPUT= -DCOMPILER= -DFLAGS= -DTYPE= -DVERSION= -P write_build_info.cmake (build_info.cmake runs it).
set(commit unproven)
set(state unproven)
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-prefix HEAD RESULT_VARIABLE failed OUTPUT_VARIABLE out ERROR_QUIET)
  # An empty prefix: the repository is this project, and not one that the sources were unpacked into.
  if(NOT failed AND out MATCHES "^\n([0-9a-f]+)\n$")
    set(commit ${CMAKE_MATCH_1})
    execute_process(COMMAND ${git} -C ${SOURCE} --no-optional-locks status --porcelain --untracked-files=no RESULT_VARIABLE failed OUTPUT_VARIABLE changes ERROR_QUIET)
    if(NOT failed)
      if(changes STREQUAL "")
        set(state clean)
      else()
        set(state changed)
      endif()
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "// Written by cmake/write_build_info.cmake.
#pragma once
#define STET_BUILD_VERSION \"@VERSION@\"
#define STET_BUILD_COMMIT \"@commit@\"
#define STET_BUILD_STATE \"@state@\"
#define STET_BUILD_COMPILER \"@COMPILER@\"
#define STET_BUILD_TYPE \"@TYPE@\"
#define STET_BUILD_FLAGS \"@FLAGS@\"
" @ONLY)
