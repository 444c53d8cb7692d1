// What fitted machines say of rows: scores, symbols or log-probabilities of the columns they make up.
#pragma once

#include <cstdint>

#include "linear.h"

namespace nary {

enum class Answer : int { scores, symbols, log_probabilities };

// Some columns of a code and their machines, which lie side by side.
struct ColumnMachines {
  std::int64_t n_columns;
  const std::int64_t* starts;    // where each column's machines begin, the first at 0, and where the last one's end
  const std::int16_t* alphabet;  // symbols of each column
  const std::uint8_t* seen;      // (columns, n_symbols): whether a symbol was met in training
  const float* sharpness;        // by which a column's scores are multiplied before the softmax
  std::int64_t n_symbols;        // the largest alphabet of the whole code: the last axis of the answers
  bool pairs;                    // a machine for every pair of symbols, else for each symbol (for two, one)
};

// weights is (features, stride) and may be read up to kMachines beyond its end.
template <class Real>
struct FittedMachines {
  const Real* weights;
  std::int64_t stride;
  const Real* intercepts;
};

// out is (rows, columns) int16 for symbols, else (rows, columns, n_symbols) float.
template <class Real>
void answer(const LinearRows<Real>& rows, const FittedMachines<Real>& machines, const ColumnMachines& columns,
            Answer what, int n_threads, void* out);

// The same from the machines' scores, (rows, machines).
template <class Real>
void answer_scores(const Real* scores, std::int64_t n_rows, const ColumnMachines& columns, Answer what, int n_threads,
                   void* out);

}  // namespace nary
