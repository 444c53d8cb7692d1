// From rows to answers, a tile of rows and a run of columns at a time: the machines' scores live only in a thread's memory.
#include "answers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels.h"
#include "machines.h"
#include "parallel.h"

namespace nary {
namespace {

constexpr std::int64_t kTileRows = 256;
constexpr std::int64_t kPanel = 64;              // machines whose weights are laid side by side
constexpr std::int64_t kMostScores = 1 << 20;    // of a tile that are held

// Columns first..last-1, of at least kPanel machines where there are so many.
struct Run {
  std::int64_t first, last;
};

std::vector<Run> runs_of(const ColumnMachines& columns) {
  std::vector<Run> runs;
  for (std::int64_t s = 0; s < columns.n_columns;) {
    std::int64_t last = s + 1;
    while (last < columns.n_columns && columns.starts[last] - columns.starts[s] < kPanel) ++last;
    runs.push_back({s, last});
    s = last;
  }
  return runs;
}

// One column's scores of its symbols, from those of its machines.
template <class Real>
class Reader {
 public:
  explicit Reader(const ColumnMachines& columns) : columns_(columns), symbols_(at(columns.n_symbols)) {}

  const std::vector<Real>& read(std::int64_t s, const Real* machines) {
    const std::int64_t n = columns_.alphabet[s], count = columns_.starts[s + 1] - columns_.starts[s];
    std::fill(symbols_.begin(), symbols_.end(), -std::numeric_limits<Real>::infinity());
    if (count == 1) {
      symbols_[0] = -machines[0], symbols_[1] = machines[0];
    } else if (columns_.pairs) {
      read_pairs(s, n, machines);
    } else {
      std::copy_n(machines, n, symbols_.begin());
    }
    for (std::int64_t k = 0; k < n; ++k) {
      if (!seen(s, k)) symbols_[at(k)] = -std::numeric_limits<Real>::infinity();
    }
    return symbols_;
  }

 private:
  bool seen(std::int64_t s, std::int64_t k) const { return columns_.seen[s * columns_.n_symbols + k] != 0; }

  // Votes of the pairs, and between equal votes the sum of their scores, brought below 1/3.
  void read_pairs(std::int64_t s, std::int64_t n, const Real* machines) {
    votes_.assign(at(n), 0), sums_.assign(at(n), Real{0});
    for (std::int64_t a = 0; a < n; ++a) {
      for (std::int64_t b = a + 1; b < n; ++b, ++machines) {
        if (!seen(s, a) || !seen(s, b)) continue;
        ++votes_[at(*machines > 0 ? b : a)];
        sums_[at(a)] -= *machines, sums_[at(b)] += *machines;
      }
    }
    for (std::size_t k = 0; k < at(n); ++k) {
      symbols_[k] = static_cast<Real>(votes_[k]) + sums_[k] / (Real{3} * (std::abs(sums_[k]) + Real{1}));
    }
  }

  const ColumnMachines& columns_;
  std::vector<Real> symbols_, sums_;
  std::vector<std::int32_t> votes_;
};

template <class Real>
void write(const std::vector<Real>& scores, float sharpness, Answer what, std::int64_t place, void* out) {
  const std::size_t n = scores.size();
  const std::size_t best = at(std::max_element(scores.begin(), scores.end()) - scores.begin());
  if (what == Answer::symbols) {
    static_cast<std::int16_t*>(out)[place] = static_cast<std::int16_t>(best);
    return;
  }
  float* into = static_cast<float*>(out) + place * static_cast<std::int64_t>(n);
  if (what == Answer::scores) {
    for (std::size_t k = 0; k < n; ++k) into[k] = static_cast<float>(scores[k]);
    return;
  }
  const double highest = static_cast<double>(scores[best]);
  const double sharp = static_cast<double>(sharpness);
  double total = 0;
  for (std::size_t k = 0; k < n; ++k) {
    if (std::isinf(scores[k])) continue;
    total += std::exp(sharp * (static_cast<double>(scores[k]) - highest));
  }
  const double shift = std::log(total);
  for (std::size_t k = 0; k < n; ++k) {
    into[k] = std::isinf(scores[k]) ? -std::numeric_limits<float>::infinity()
                                    : static_cast<float>(sharp * (static_cast<double>(scores[k]) - highest) - shift);
  }
}

template <class Real>
void write_rows(const ColumnMachines& columns, const Run& run, const Real* scores, std::int64_t stride,
                std::int64_t first_row, std::int64_t n_rows, Answer what, Reader<Real>& reader, void* out) {
  const std::int64_t begin = columns.starts[run.first];
  for (std::int64_t i = 0; i < n_rows; ++i) {
    for (std::int64_t s = run.first; s < run.last; ++s) {
      const std::vector<Real>& read = reader.read(s, scores + i * stride + columns.starts[s] - begin);
      write(read, columns.sharpness[s], what, (first_row + i) * columns.n_columns + s, out);
    }
  }
}

// Scores of the machines first..last-1 (of all machines given) for a tile of rows.
template <class Real>
class Scorer {
 public:
  Scorer(const LinearRows<Real>& rows, const FittedMachines<Real>& machines) : rows_(rows), machines_(machines) {}

  std::vector<Real> scores;  // (rows, stride)
  std::int64_t stride = 0;

  void score(std::int64_t first_row, std::int64_t n_rows, std::int64_t first, std::int64_t last) {
    stride = round_up(last - first, kPanel);
    scores.resize(at(n_rows * stride));
    start_.assign(at(stride), Real{0});
    std::copy(machines_.intercepts + first, machines_.intercepts + last, start_.begin());
    if (rows_.dense) {
      for (std::int64_t panel = first; panel < last; panel += kPanel) {
        score_dense(first_row, n_rows, panel, std::min(panel + kPanel, last), panel - first);
      }
    } else {
      score_sparse(first_row, n_rows, first, round_up(last - first, kMachines));
    }
  }

 private:
  void score_dense(std::int64_t first_row, std::int64_t n_rows, std::int64_t first, std::int64_t last, std::int64_t place) {
    const std::int64_t d = rows_.n_features, lanes = round_up(last - first, kMachines);
    panel_.assign(at(d * lanes), Real{0});
    for (std::int64_t f = 0; f < d; ++f) {
      std::copy_n(machines_.weights + f * machines_.stride + first, last - first, panel_.data() + f * lanes);
    }
    for (std::int64_t i = 0; i < n_rows; i += kRowBatch) {
      const Real* x[kRowBatch];
      const std::int64_t n = std::min(kRowBatch, n_rows - i);
      for (std::int64_t r = 0; r < n; ++r) x[r] = rows_.dense + (first_row + i + r) * d;
      active_kernels<Real>().dense_scores(x, n, d, panel_.data(), lanes, lanes, start_.data() + place,
                                          scores.data() + i * stride + place, stride);
    }
  }

  void score_sparse(std::int64_t first_row, std::int64_t n_rows, std::int64_t first, std::int64_t lanes) {
    for (std::int64_t i = 0; i < n_rows; ++i) {
      const std::int64_t begin = rows_.starts[first_row + i], n = rows_.starts[first_row + i + 1] - begin;
      active_kernels<Real>().sparse_scores(rows_.values + begin, rows_.features + begin, n, machines_.weights + first,
                                           machines_.stride, lanes, start_.data(), nullptr, 0,
                                           scores.data() + i * stride);
    }
  }

  const LinearRows<Real>& rows_;
  const FittedMachines<Real>& machines_;
  std::vector<Real> panel_, start_;
};

}  // namespace

template <class Real>
void answer(const LinearRows<Real>& rows, const FittedMachines<Real>& machines, const ColumnMachines& columns,
            Answer what, int n_threads, void* out) {
  const std::vector<Run> runs = runs_of(columns);
  std::int64_t widest = 1;
  for (const Run& run : runs) widest = std::max(widest, columns.starts[run.last] - columns.starts[run.first]);
  const std::int64_t tile = std::clamp(kMostScores / widest, kRowBatch, kTileRows);
  const std::int64_t tiles = (rows.n_rows + tile - 1) / tile;
  std::vector<Scorer<Real>> scorers;
  std::vector<Reader<Real>> readers;
  for (int thread = 0; thread < n_threads; ++thread) {
    scorers.emplace_back(rows, machines);
    readers.emplace_back(columns);
  }
  parallel_for(tiles * size_of(runs), n_threads, [&](int thread, std::int64_t item) {
    const Run& run = runs[at(item / tiles)];
    const std::int64_t first = item % tiles * tile, n_rows = std::min(tile, rows.n_rows - first);
    Scorer<Real>& scorer = scorers[at(thread)];
    scorer.score(first, n_rows, columns.starts[run.first], columns.starts[run.last]);
    write_rows(columns, run, scorer.scores.data(), scorer.stride, first, n_rows, what, readers[at(thread)], out);
  });
}

template <class Real>
void answer_scores(const Real* scores, std::int64_t n_rows, const ColumnMachines& columns, Answer what, int n_threads,
                   void* out) {
  const std::int64_t n_machines = columns.starts[columns.n_columns];
  std::vector<Reader<Real>> readers;
  for (int thread = 0; thread < n_threads; ++thread) readers.emplace_back(columns);
  parallel_for((n_rows + kTileRows - 1) / kTileRows, n_threads, [&](int thread, std::int64_t tile) {
    const std::int64_t first = tile * kTileRows, n = std::min(kTileRows, n_rows - first);
    write_rows(columns, Run{0, columns.n_columns}, scores + first * n_machines, n_machines, first, n, what,
               readers[at(thread)], out);
  });
}

template void answer(const LinearRows<float>&, const FittedMachines<float>&, const ColumnMachines&, Answer, int, void*);
template void answer(const LinearRows<double>&, const FittedMachines<double>&, const ColumnMachines&, Answer, int, void*);
template void answer_scores(const float*, std::int64_t, const ColumnMachines&, Answer, int, void*);
template void answer_scores(const double*, std::int64_t, const ColumnMachines&, Answer, int, void*);

}  // namespace nary
