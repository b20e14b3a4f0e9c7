# stet_each(OUTPUT PATTERN DEF...): writes OUTPUT, a header with one #include for every entry of the .def files, so that an entry is
# the whole registration of a folder. PATTERN names the header; @ stands for the first argument of an entry.
function(stet_each output pattern)
  set(text "// Written by cmake/registry.cmake from the .def files.\n")
  foreach(def IN LISTS ARGN)
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${def})
    file(STRINGS ${def} entries REGEX "^[A-Z_]+\\([a-z0-9_]+[,)]")
    foreach(entry IN LISTS entries)
      string(REGEX REPLACE "^[A-Z_]+\\(([a-z0-9_]+).*" "\\1" id "${entry}")
      string(REPLACE "@" "${id}" header "${pattern}")
      string(FIND "${text}" "\"${header}\"" there)
      if(there EQUAL -1)
        string(APPEND text "#include \"${header}\"\n")
      endif()
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT "${text}" @ONLY)
endfunction()

# stet_registries(FOLDER DEF_FOLDER...): the headers of all registries, below FOLDER, from the .def files of src and of the folders
# named (tests/extend has toys).
function(stet_registries folder)
  set(formats ${CMAKE_SOURCE_DIR}/src/formats/formats.def)
  set(kernels ${CMAKE_SOURCE_DIR}/src/kernels/kernels.def)
  foreach(more IN LISTS ARGN)
    list(APPEND formats ${more}/formats.def)
    list(APPEND kernels ${more}/kernels.def)
  endforeach()
  stet_each(${folder}/formats/each_cpu.h "formats/@/@_cpu.h" ${formats})
  stet_each(${folder}/kernels/each_contract.h "kernels/@/@.h" ${kernels})
  stet_each(${folder}/kernels/each_cpu.h "kernels/@/@_cpu.h" ${kernels})
endfunction()

stet_registries(${CMAKE_BINARY_DIR}/generated)
