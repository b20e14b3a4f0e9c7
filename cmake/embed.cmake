# stet_embed(LAYER file...): each file becomes `extern const std::string_view k<Name>` of "embedded/<LAYER>.h", so that a
# binary needs no files beside it. Name: the file's name in CamelCase without its extension (canary-v1.json: kCanaryV1).
function(stet_embed layer)
  set(header ${CMAKE_BINARY_DIR}/generated/embedded/${layer}.h)
  set(source ${CMAKE_BINARY_DIR}/generated/embedded/${layer}.cpp)
  add_custom_command(
    OUTPUT ${header} ${source}
    COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/cmake/embed.py ${header} ${source} ${ARGN}
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/embed.py
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    COMMENT "Embedding the data files of ${layer}")
  add_custom_target(stet_${layer}_embedded DEPENDS ${header} ${source})
  target_sources(stet_${layer} PRIVATE ${source} ${header})
  add_dependencies(stet_${layer} stet_${layer}_embedded)
endfunction()
