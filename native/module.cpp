// The Python module nary._native. src/nary/_kernels/ is its only caller and checks every argument first.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "drivers.h"
#include "kernels.h"
#include "module.h"

namespace {

using nary::python::In;
using nary::python::Out;
using nary::python::size;

nary::FoldBlocks blocks_of(const In<std::uint16_t, 1>& cells, const In<std::int64_t, 1>& starts,
                           std::int64_t n_classes, std::int64_t n_columns, std::int64_t block_columns,
                           std::int64_t n_symbols, std::int64_t group) {
  const std::int64_t n_blocks = (size(starts.shape(0)) - 1) / n_classes;
  return {cells.data(), starts.data(), n_blocks, n_classes, n_columns, block_columns, n_symbols, group};
}

void add_costs(In<std::uint16_t, 1> cells, In<std::int64_t, 1> starts, std::int64_t block_columns,
               std::int64_t group, In<float, 3> costs, In<float, 1> neutral, int n_threads, Out<float, 3> totals) {
  const auto blocks = blocks_of(cells, starts, size(totals.shape(1)), size(costs.shape(1)), block_columns,
                                size(costs.shape(2)), group);
  const nb::gil_scoped_release release;
  nary::add_costs(blocks, costs.data(), neutral.data(), size(costs.shape(0)), n_threads, totals.data());
}

template <class T>
void add_symbols(In<std::uint16_t, 1> cells, In<std::int64_t, 1> starts, std::int64_t block_columns,
                 std::int64_t group, In<std::int16_t, 2> symbols, In<T, 1> profile, In<T, 1> neutral, int n_threads, Out<T, 3> totals) {
  const auto blocks = blocks_of(cells, starts, size(totals.shape(1)), size(symbols.shape(1)), block_columns,
                                (size(profile.shape(0)) + 1) / 2, group);
  const nb::gil_scoped_release release;
  nary::add_symbols<T>(blocks, symbols.data(), profile.data(), neutral.data(), size(symbols.shape(0)), n_threads,
                       totals.data());
}

template <class T>
void finish_costs(In<T, 3> totals, T base, float scale, int n_threads, Out<float, 2> out) {
  const nb::gil_scoped_release release;
  nary::finish_costs<T>(totals.data(), size(out.shape(0)), size(out.shape(1)), base, scale, n_threads, out.data());
}

template <class T>
void nearest_classes(In<T, 3> totals, T base, float scale, int n_threads, Out<std::int32_t, 1> out) {
  const nb::gil_scoped_release release;
  nary::nearest_classes<T>(totals.data(), size(out.shape(0)), size(totals.shape(1)), base, scale, n_threads, out.data());
}

template <class S>
void distances(In<S, 2> words, std::int64_t first, bool absolute, int n_threads, Out<std::int32_t, 2> out) {
  const nb::gil_scoped_release release;
  nary::distances<S>(words.data(), size(words.shape(0)), size(words.shape(1)), first, first + size(out.shape(0)),
                     absolute, n_threads, out.data());
}

template <class S>
std::pair<std::int64_t, std::int32_t> search_random(std::uint64_t seed, std::int64_t first, std::int64_t last,
                                                    std::int32_t floor, std::uint32_t n_symbols, bool absolute,
                                                    bool distinct_columns, int n_threads, Out<S, 2> best) {
  const nb::gil_scoped_release release;
  const auto found = nary::search_random<S>(seed, first, last, floor, size(best.shape(0)), size(best.shape(1)), n_symbols,
                                            absolute, distinct_columns, n_threads, best.data());
  return {found.candidate, found.min_distance};
}

std::vector<std::string> levels() {
  int count = 0;
  const nary::Kernels* const* tables = nary::available_levels(&count);
  std::vector<std::string> names;
  for (int k = 0; k < count; ++k) names.emplace_back(tables[k]->level);
  return names;
}

// Overloads are told apart by dtype alone: nothing is converted on the way in.
template <class T>
void define_fold(nb::module_& m) {
  m.def("add_symbols", add_symbols<T>, "cells"_a.noconvert(), "starts"_a.noconvert(), "block_columns"_a, "group"_a,
        "symbols"_a.noconvert(), "profile"_a.noconvert(), "neutral"_a.noconvert(), "n_threads"_a,
        "totals"_a.noconvert());
  m.def("finish_costs", finish_costs<T>, "totals"_a.noconvert(), "base"_a, "scale"_a, "n_threads"_a,
        "out"_a.noconvert());
  m.def("nearest_classes", nearest_classes<T>, "totals"_a.noconvert(), "base"_a, "scale"_a, "n_threads"_a,
        "out"_a.noconvert());
}

template <class S>
void define_code(nb::module_& m) {
  m.def("distances", distances<S>, "words"_a.noconvert(), "first"_a, "absolute"_a, "n_threads"_a,
        "out"_a.noconvert());
  m.def("search_random", search_random<S>, "seed"_a, "first"_a, "last"_a, "floor"_a, "n_symbols"_a, "absolute"_a,
        "distinct_columns"_a, "n_threads"_a, "best"_a.noconvert());
}

}  // namespace

NB_MODULE(_native, m) {
  m.def("levels", levels);
  m.def("level", [] { return std::string(nary::active().level); });
  m.def("activate", [](const std::string& level) { return nary::activate(level.c_str()); }, "level"_a);
  m.def("add_costs", add_costs, "cells"_a.noconvert(), "starts"_a.noconvert(), "block_columns"_a, "group"_a,
        "costs"_a.noconvert(), "neutral"_a.noconvert(), "n_threads"_a, "totals"_a.noconvert());
  define_fold<float>(m);
  define_fold<std::uint16_t>(m);
  define_code<std::uint8_t>(m);
  define_code<std::uint16_t>(m);
  define_trees(m);
  define_linear(m);
}
