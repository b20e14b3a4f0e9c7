# CUDA, where nvcc is: the layers compile their *.cu files and what lies in folders named cuda, and STET_HAS_CUDA is defined. Without it
# the same program says that it was built without. Builds with sanitizers leave it out: they are about the processor's code. An emulated build
# compiles kernels as C++ and runs them on the processor (docs/cuda.md).
option(STET_CUDA "Use CUDA where nvcc is found" ON)
option(STET_EMULATED_CUDA "Run the kernels on the processor, for tests" OFF)
set(STET_HAS_CUDA OFF)
if(STET_EMULATED_CUDA)
  find_package(CUDAToolkit REQUIRED)  # its headers
  set(STET_HAS_CUDA ON)
elseif(STET_CUDA AND NOT STET_SANITIZE)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(STET_HAS_CUDA ON)
  endif()
endif()

if(STET_EMULATED_CUDA)
  include_directories(BEFORE ${CMAKE_SOURCE_DIR}/tests/emulated_cuda/include)
  include_directories(SYSTEM ${CUDAToolkit_INCLUDE_DIRS})
  add_library(stet_emulated_cuda STATIC tests/emulated_cuda/fiber.cpp tests/emulated_cuda/runtime.cpp tests/emulated_cuda/scheduler.cpp)
  set(STET_CUDA_RUNTIME stet_emulated_cuda)
elseif(STET_HAS_CUDA)
  # sm_80 is the floor; the last entry is code that later cards compile for themselves.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  set(STET_CUDA_RUNTIME CUDA::cudart_static)
  # CMake 3.25 does not know that nvcc speaks C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  # The contract of docs/numerics.md.
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-ftz=false;-prec-div=true;-prec-sqrt=true;--expt-relaxed-constexpr;-Xcompiler=-ffp-contract=off>")
endif()
message(STATUS "CUDA: ${STET_HAS_CUDA} ${CMAKE_CUDA_COMPILER}")
