// Activations as the CUDA products read them.
//
// i8: per group of 8 rows, one record of kCudaRecord bytes a block of 32 columns:
//     [column of the group: 8][t: 4][8 B]  codes 4t .. 4t + 3, then 16 + 4t .. 19 + 4t: both registers of a B fragment
//     [t: 4][16 B]                         dx of rows 2t and 2t + 1, then the sums of their codes
//     [8] f32                              dx * sum, rounded once
//     [8] i32                              the sum of the codes 16 .. 31
// f32: per group of 8 rows, [k][4 or 8 or fewer] floats: as many as cuda_float_columns says, the missing rows
// unspecified.
// planes: for weights in F8_E4M3 and MXFP4 (kernels/matvec/plane_unit.cuh), row by row, cuda_plane_row(k) bytes each:
//     [k]      codes in order: of kind e4m3 the e4m3 code of x / dx, of kind i8 the int8 code
//     [k / 32] f32 dx of each block of 32 (of kind e4m3 the same for the four blocks of a group)
#pragma once

#include <cstddef>
#include <cstdint>

namespace stet {

constexpr uint32_t kCudaGroup = 8;
constexpr uint32_t kCudaRecord = 384;

// Columns that the float form of a group of `rows` rows has: 1, 2, 4 or 8.
constexpr uint32_t cuda_float_columns(uint32_t rows) { return rows <= 1 ? 1 : rows == 2 ? 2 : rows <= 4 ? 4 : 8; }

constexpr size_t cuda_i8_bytes(uint32_t rows, uint32_t k) {
  return size_t{(rows + kCudaGroup - 1) / kCudaGroup} * (k / 32) * kCudaRecord;
}
constexpr size_t cuda_f32_bytes(uint32_t rows, uint32_t k) {
  return size_t{(rows + kCudaGroup - 1) / kCudaGroup} * kCudaGroup * k * 4;
}

// A row of planes. Rows begin at multiples of 16 bytes.
constexpr size_t cuda_plane_row(uint32_t k) { return (size_t{k} + k / 32 * 4 + 15) / 16 * 16; }
constexpr size_t cuda_plane_bytes(uint32_t rows, uint32_t k) { return rows * cuda_plane_row(k); }

}  // namespace stet
