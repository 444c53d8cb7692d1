// The fold: class costs from cost tables. Included once by each level's kernel file.
//
// 64 samples lie on the vector axis. For a class, its cells of a block of columns are summed in registers and added to
// memory once, in the order of the columns, so the sum of a class does not depend on how columns are cut into blocks.
#pragma once

#include "kernels.h"

namespace {

using nary::kTile;

template <class T>
struct Vector;
template <>
struct Vector<float> {
  typedef float type __attribute__((vector_size(NARY_VECTOR_BYTES), aligned(4), may_alias));
  typedef std::uint32_t bit;
  typedef bit bits __attribute__((vector_size(NARY_VECTOR_BYTES), aligned(4), may_alias));
};
template <>
struct Vector<std::uint16_t> {
  typedef std::uint16_t type __attribute__((vector_size(NARY_VECTOR_BYTES), aligned(2), may_alias));
  typedef std::uint16_t bit;
  typedef type bits;
};

// `profile[m - v]` is what a column that says v charges to symbol m: its middle lies n_symbols - 1 behind its start.
//
// With few symbols a column's table is laid by comparing: for every pair (said, m) the samples that said it take the
// bits of its cost. That is n_symbols^2 vector steps instead of 64 * n_symbols scattered stores.
template <class T>
void lay_column_by_comparing(const std::int16_t* symbols, std::int64_t stride, std::int64_t n_rows,
                             std::int64_t n_symbols, const T* profile, T neutral, T* cells) {
  typedef typename Vector<T>::bits Bits;
  constexpr int kStep = NARY_VECTOR_BYTES / static_cast<int>(sizeof(T));
  typename Vector<T>::bit said[kTile];
  for (std::int64_t i = 0; i < kTile; ++i) {
    said[i] = static_cast<typename Vector<T>::bit>(i < n_rows ? symbols[i * stride] : n_symbols);  // nobody's symbol
  }
  for (std::int64_t m = 0; m < n_symbols; ++m) {
    for (std::int64_t i = 0; i < kTile; i += kStep) {
      const Bits here = *reinterpret_cast<const Bits*>(said + i);
      Bits found = {};
      for (std::int64_t v = 0; v < n_symbols; ++v) {
        const T cost = static_cast<T>(profile[m - v] - neutral);
        typename Vector<T>::bit bits;
        __builtin_memcpy(&bits, &cost, sizeof bits);
        found |= reinterpret_cast<Bits>(here == static_cast<typename Vector<T>::bit>(v)) & bits;
      }
      *reinterpret_cast<Bits*>(cells + m * kTile + i) = found;
    }
  }
}

template <class T>
void lay_column_by_copying(const std::int16_t* symbols, std::int64_t stride, std::int64_t n_rows,
                           std::int64_t n_symbols, const T* profile, T neutral, T* cells) {
  if (n_rows < kTile) {
    for (std::int64_t k = 0; k < n_symbols * kTile; ++k) cells[k] = 0;
  }
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const T* said = profile - symbols[i * stride];
    for (std::int64_t m = 0; m < n_symbols; ++m) cells[m * kTile + i] = static_cast<T>(said[m] - neutral);
  }
}

// Where every wrong symbol costs alike all cells take that cost, and then each sample's own symbol its.
template <class T>
void lay_column_by_filling(const std::int16_t* symbols, std::int64_t stride, std::int64_t n_rows,
                           std::int64_t n_symbols, const T* profile, T neutral, T* cells) {
  const T wrong = static_cast<T>(profile[1] - neutral), right = static_cast<T>(profile[0] - neutral);
  T row[kTile];
  for (std::int64_t i = 0; i < kTile; ++i) row[i] = i < n_rows ? wrong : T{0};
  for (std::int64_t m = 0; m < n_symbols; ++m) {
    for (std::int64_t i = 0; i < kTile; ++i) cells[m * kTile + i] = row[i];
  }
  for (std::int64_t i = 0; i < n_rows; ++i) cells[symbols[i * stride] * kTile + i] = right;
}

template <class T>
bool is_flat(const T* profile, std::int64_t n_symbols) {
  for (std::int64_t apart = 2; apart < n_symbols; ++apart) {
    if (profile[apart] != profile[1]) return false;
  }
  return true;
}

template <class T>
void lay_symbols(const std::int16_t* symbols, std::int64_t stride, std::int64_t n_rows, std::int64_t n_columns,
                 std::int64_t n_symbols, const T* profile, const T* neutral, T* table) {
  profile += n_symbols - 1;
  const bool few = n_symbols <= NARY_VECTOR_BYTES / 4, flat = !few && is_flat(profile, n_symbols);
  for (std::int64_t s = 0; s < n_columns; ++s) {
    T* cells = table + s * n_symbols * kTile;
    if (few) {
      lay_column_by_comparing(symbols + s, stride, n_rows, n_symbols, profile, neutral[s], cells);
    } else if (flat) {
      lay_column_by_filling(symbols + s, stride, n_rows, n_symbols, profile, neutral[s], cells);
    } else {
      lay_column_by_copying(symbols + s, stride, n_rows, n_symbols, profile, neutral[s], cells);
    }
  }
}

template <class T>
void combine(const T* costs, std::int64_t n_columns, std::int64_t n_symbols, std::int64_t group, T* cells) {
  std::int64_t group_cells = 1;
  for (std::int64_t k = 0; k < group; ++k) group_cells *= n_symbols;
  for (std::int64_t first = 0; first < n_columns; first += group, cells += group_cells * kTile) {
    const T* column = costs + first * n_symbols * kTile;
    const std::int64_t columns = n_columns - first < group ? n_columns - first : group;
    std::int64_t words = n_symbols;
    for (std::int64_t k = 0; k < words * kTile; ++k) cells[k] = column[k];
    // From the last word to the first, so that a shorter word is read before the longer ones overwrite it.
    for (std::int64_t k = 1; k < columns; ++k, words *= n_symbols) {
      column += n_symbols * kTile;
      for (std::int64_t w = words - 1; w >= 0; --w) {
        for (std::int64_t m = n_symbols - 1; m >= 0; --m) {
          const T* shorter = cells + w * kTile;
          const T* digit = column + m * kTile;
          T* longer = cells + (w * n_symbols + m) * kTile;
          for (std::int64_t i = 0; i < kTile; ++i) longer[i] = static_cast<T>(shorter[i] + digit[i]);
        }
      }
    }
  }
}

// kLanes of the 64 samples a pass: as many as fit in the level's vector registers.
template <class T, int kLanes>
void fold(const T* table, const std::uint16_t* cells, const std::int64_t* starts, std::int64_t n_classes, T* totals) {
  typedef typename Vector<T>::type V;
  constexpr int kStep = NARY_VECTOR_BYTES / static_cast<int>(sizeof(T));
  constexpr int kCount = kLanes / kStep;
  for (std::int64_t c = 0; c < n_classes; ++c) {
    const std::uint16_t* first = cells + starts[c];
    const std::uint16_t* last = cells + starts[c + 1];
    for (int lane = 0; lane < kTile; lane += kLanes) {
      T* total = totals + c * kTile + lane;
      V sum[kCount];
      for (int v = 0; v < kCount; ++v) sum[v] = *reinterpret_cast<const V*>(total + v * kStep);
      for (const std::uint16_t* cell = first; cell != last; ++cell) {
        const T* costs = table + static_cast<std::int64_t>(*cell) * kTile + lane;
        for (int v = 0; v < kCount; ++v) sum[v] += *reinterpret_cast<const V*>(costs + v * kStep);
      }
      for (int v = 0; v < kCount; ++v) *reinterpret_cast<V*>(total + v * kStep) = sum[v];
    }
  }
}

// Nearest multiple of 2^-16, ties to even; from 64 up a float's own digits are 2^-17 or coarser and stay. Costs that
// differ then differ by at least 2^-17, which no softmax in double precision loses. Adding and subtracting
// 1.5 * 2^23 * 2^-16 rounds in the float unit itself, the same on every level.
inline float settle(float cost) {
  constexpr float kShift = 192.0f;  // 1.5 * 2^23 / 2^16
  const float magnitude = cost < 0 ? -cost : cost;
  return magnitude < 64.0f ? (cost + kShift) - kShift : cost;
}

template <class T>
inline float cost_of(T total, T base, float scale) {
  return settle(scale * static_cast<float>(static_cast<T>(total + base)));
}

template <class T>
void finish(const T* totals, std::int64_t n_rows, std::int64_t n_classes, T base, float scale, float* out) {
  for (std::int64_t first = 0; first < n_classes; first += 16) {
    const std::int64_t last = first + 16 < n_classes ? first + 16 : n_classes;
    for (std::int64_t i = 0; i < n_rows; ++i) {
      for (std::int64_t c = first; c < last; ++c) out[i * n_classes + c] = cost_of(totals[c * kTile + i], base, scale);
    }
  }
}

template <class T>
void nearest(const T* totals, std::int64_t n_rows, std::int64_t n_classes, T base, float scale, std::int32_t* out) {
  float least[kTile];
  std::int32_t best[kTile];
  for (std::int64_t i = 0; i < kTile; ++i) {
    least[i] = cost_of(totals[i], base, scale);
    best[i] = 0;
  }
  for (std::int32_t c = 1; c < n_classes; ++c) {
    for (std::int64_t i = 0; i < kTile; ++i) {
      const float cost = cost_of(totals[c * kTile + i], base, scale);
      best[i] = cost < least[i] ? c : best[i];
      least[i] = cost < least[i] ? cost : least[i];
    }
  }
  for (std::int64_t i = 0; i < n_rows; ++i) out[i] = best[i];
}

}  // namespace
