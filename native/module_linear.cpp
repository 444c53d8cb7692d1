// Linear machines in the Python module: fitting them in blocks or in Gram matrices, and what they say.
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "answers.h"
#include "linear.h"
#include "module.h"

namespace {

using nary::python::In;
using nary::python::Out;
using nary::python::size;

template <class Real>
using Sparse = std::tuple<In<std::int64_t, 1>, In<std::int32_t, 1>, In<Real, 1>>;  // starts, features, values

template <class Real>
nary::LinearRows<Real> rows_of(const In<Real, 2>& dense) {
  return {size(dense.shape(0)), size(dense.shape(1)), dense.data(), nullptr, nullptr, nullptr};
}

template <class Real>
nary::LinearRows<Real> rows_of(const Sparse<Real>& parts, std::int64_t n_features) {
  const auto& [starts, features, values] = parts;
  return {size(starts.shape(0)) - 1, n_features, nullptr, starts.data(), features.data(), values.data()};
}

struct LinearOptions {
  int loss;
  double constant;
  bool free_intercept;
  double tol;
  std::int64_t max_epochs;
  std::uint64_t seed;
};

// groups, costs, positive weights, negative weights
template <class Real>
using Given = std::tuple<In<std::int32_t, 1>, In<Real, 1>, In<Real, 1>, In<Real, 1>>;
// weights, intercepts, gaps, epochs
template <class Real>
using Fitted = std::tuple<Out<Real, 2>, Out<Real, 1>, Out<double, 1>, Out<std::int32_t, 1>>;

template <class Real>
nary::LinearTask<Real> task_of(const nary::LinearRows<Real>& rows, const Given<Real>& given, std::int64_t n_groups,
                               const LinearOptions& options) {
  const auto& [groups, costs, positive, negative] = given;
  return {rows, static_cast<nary::Loss>(options.loss), groups.data(), n_groups, costs.data(),
          static_cast<Real>(options.constant), options.free_intercept, options.tol, options.max_epochs, options.seed,
          size(positive.shape(0)), nullptr, 0, positive.data(), negative.data()};
}

template <class Real>
nary::LinearFit<Real> fit_of(const Fitted<Real>& fitted, std::int64_t first, Real* states) {
  const auto& [weights, intercepts, gaps, epochs] = fitted;
  return {weights.data() + first, size(weights.shape(1)), intercepts.data() + first, gaps.data() + first,
          epochs.data() + first, states ? states + first : nullptr};
}

template <class Real>
void fit_blocks(const nary::LinearRows<Real>& rows, const Given<Real>& given, const In<std::int8_t, 2>& signs,
                const In<std::int64_t, 1>& columns, std::int64_t first, const LinearOptions& options, int n_threads,
                const Fitted<Real>& fitted, const nb::object& states) {
  nary::LinearTask<Real> task = task_of(rows, given, size(signs.shape(0)), options);
  task.columns = columns.data(), task.n_columns = size(columns.shape(0)) - 1;
  Real* start = states.is_none() ? nullptr : nb::cast<Out<Real, 2>>(states).data();
  const nary::LinearFit<Real> fit = fit_of(fitted, first, start);
  const nb::gil_scoped_release release;
  nary::fit_blocks<Real>(task, signs.data(), n_threads, fit);
}

template <class Real>
void fit_newton(const nary::LinearRows<Real>& rows, const Given<Real>& given, const In<std::int8_t, 2>& signs,
                std::int64_t first, const LinearOptions& options, int n_threads, const Fitted<Real>& fitted, bool warm) {
  const nary::LinearTask<Real> task = task_of(rows, given, size(signs.shape(0)), options);
  const nary::LinearFit<Real> fit = fit_of<Real>(fitted, first, nullptr);
  const nb::gil_scoped_release release;
  nary::fit_newton<Real>(task, signs.data(), n_threads, warm, fit);
}

template <class Real>
void fit_grams(const nary::LinearRows<Real>& rows, const Given<Real>& given, std::int64_t n_groups,
               const In<std::int64_t, 1>& starts, const In<std::int32_t, 1>& classes, const In<std::int8_t, 1>& signs,
               std::int64_t first, const LinearOptions& options, int n_threads, const Fitted<Real>& fitted) {
  const nary::LinearTask<Real> task = task_of(rows, given, n_groups, options);
  const nary::LinearFit<Real> fit = fit_of<Real>(fitted, first, nullptr);
  const nb::gil_scoped_release release;
  nary::fit_grams<Real>(task, starts.data(), classes.data(), signs.data(), n_threads, fit);
}

// starts, alphabet, seen, sharpness, pairs
using Columns = std::tuple<In<std::int64_t, 1>, In<std::int16_t, 1>, In<std::uint8_t, 2>, In<float, 1>, bool>;

nary::ColumnMachines columns_of(const Columns& columns) {
  const auto& [starts, alphabet, seen, sharpness, pairs] = columns;
  return {size(alphabet.shape(0)), starts.data(), alphabet.data(), seen.data(), sharpness.data(),
          size(seen.shape(1)), pairs};
}

template <class Real, class Value, int kAxes>
void answer(const nary::LinearRows<Real>& rows, const In<Real, 2>& weights, const In<Real, 1>& intercepts,
            std::int64_t first, const Columns& columns, int what, int n_threads, const Out<Value, kAxes>& out) {
  const nary::FittedMachines<Real> machines{weights.data() + first, size(weights.shape(1)), intercepts.data() + first};
  const nb::gil_scoped_release release;
  nary::answer<Real>(rows, machines, columns_of(columns), static_cast<nary::Answer>(what), n_threads, out.data());
}

template <class Real, class Value, int kAxes>
void define_answers(nb::module_& m) {
  m.def("answer_dense", [](In<Real, 2> X, In<Real, 2> weights, In<Real, 1> intercepts, std::int64_t first,
                           Columns columns, int what, int n_threads, Out<Value, kAxes> out) {
    answer<Real, Value, kAxes>(rows_of(X), weights, intercepts, first, columns, what, n_threads, out);
  }, "X"_a.noconvert(), "weights"_a.noconvert(), "intercepts"_a.noconvert(), "first"_a, "columns"_a, "what"_a,
        "n_threads"_a, "out"_a.noconvert());
  m.def("answer_sparse", [](Sparse<Real> parts, std::int64_t n_features, In<Real, 2> weights, In<Real, 1> intercepts,
                            std::int64_t first, Columns columns, int what, int n_threads, Out<Value, kAxes> out) {
    answer<Real, Value, kAxes>(rows_of(parts, n_features), weights, intercepts, first, columns, what, n_threads, out);
  }, "parts"_a, "n_features"_a, "weights"_a.noconvert(), "intercepts"_a.noconvert(), "first"_a, "columns"_a, "what"_a,
        "n_threads"_a, "out"_a.noconvert());
  m.def("answer_scores", [](In<Real, 2> scores, Columns columns, int what, int n_threads, Out<Value, kAxes> out) {
    const nb::gil_scoped_release release;
    nary::answer_scores<Real>(scores.data(), size(scores.shape(0)), columns_of(columns),
                              static_cast<nary::Answer>(what), n_threads, out.data());
  }, "scores"_a.noconvert(), "columns"_a, "what"_a, "n_threads"_a, "out"_a.noconvert());
}

template <class Real>
void define_fits(nb::module_& m) {
  m.def("fit_blocks_dense", [](In<Real, 2> X, Given<Real> given, In<std::int8_t, 2> signs, In<std::int64_t, 1> columns,
                               std::int64_t first, const LinearOptions& options, int n_threads, Fitted<Real> fitted,
                               nb::object states) {
    fit_blocks(rows_of(X), given, signs, columns, first, options, n_threads, fitted, states);
  }, "X"_a.noconvert(), "given"_a, "signs"_a.noconvert(), "columns"_a.noconvert(), "first"_a, "options"_a,
        "n_threads"_a, "fitted"_a, "states"_a.none());
  m.def("fit_blocks_sparse", [](Sparse<Real> parts, std::int64_t n_features, Given<Real> given,
                                In<std::int8_t, 2> signs, In<std::int64_t, 1> columns, std::int64_t first,
                                const LinearOptions& options, int n_threads, Fitted<Real> fitted, nb::object states) {
    fit_blocks(rows_of(parts, n_features), given, signs, columns, first, options, n_threads, fitted, states);
  }, "parts"_a, "n_features"_a, "given"_a, "signs"_a.noconvert(), "columns"_a.noconvert(), "first"_a, "options"_a,
        "n_threads"_a, "fitted"_a, "states"_a.none());
  m.def("fit_newton_dense", [](In<Real, 2> X, Given<Real> given, In<std::int8_t, 2> signs, std::int64_t first,
                               const LinearOptions& options, int n_threads, Fitted<Real> fitted, bool warm) {
    fit_newton(rows_of(X), given, signs, first, options, n_threads, fitted, warm);
  }, "X"_a.noconvert(), "given"_a, "signs"_a.noconvert(), "first"_a, "options"_a, "n_threads"_a, "fitted"_a, "warm"_a);
  m.def("fit_newton_sparse", [](Sparse<Real> parts, std::int64_t n_features, Given<Real> given,
                                In<std::int8_t, 2> signs, std::int64_t first, const LinearOptions& options,
                                int n_threads, Fitted<Real> fitted, bool warm) {
    fit_newton(rows_of(parts, n_features), given, signs, first, options, n_threads, fitted, warm);
  }, "parts"_a, "n_features"_a, "given"_a, "signs"_a.noconvert(), "first"_a, "options"_a, "n_threads"_a, "fitted"_a,
        "warm"_a);
  m.def("fit_grams_dense", [](In<Real, 2> X, Given<Real> given, std::int64_t n_groups, In<std::int64_t, 1> starts,
                              In<std::int32_t, 1> classes, In<std::int8_t, 1> signs, std::int64_t first,
                              const LinearOptions& options, int n_threads, Fitted<Real> fitted) {
    fit_grams(rows_of(X), given, n_groups, starts, classes, signs, first, options, n_threads, fitted);
  }, "X"_a.noconvert(), "given"_a, "n_groups"_a, "starts"_a.noconvert(), "classes"_a.noconvert(),
        "signs"_a.noconvert(), "first"_a, "options"_a, "n_threads"_a, "fitted"_a);
  m.def("fit_grams_sparse", [](Sparse<Real> parts, std::int64_t n_features, Given<Real> given, std::int64_t n_groups,
                               In<std::int64_t, 1> starts, In<std::int32_t, 1> classes, In<std::int8_t, 1> signs,
                               std::int64_t first, const LinearOptions& options, int n_threads, Fitted<Real> fitted) {
    fit_grams(rows_of(parts, n_features), given, n_groups, starts, classes, signs, first, options, n_threads, fitted);
  }, "parts"_a, "n_features"_a, "given"_a, "n_groups"_a, "starts"_a.noconvert(), "classes"_a.noconvert(),
        "signs"_a.noconvert(), "first"_a, "options"_a, "n_threads"_a, "fitted"_a);
  define_answers<Real, std::int16_t, 2>(m);
  define_answers<Real, float, 3>(m);
}

}  // namespace

void define_linear(nb::module_& m) {
  nb::class_<LinearOptions>(m, "LinearOptions")
      .def("__init__", [](LinearOptions* self, int loss, double constant, bool free_intercept, double tol,
                          std::int64_t max_epochs, std::uint64_t seed) {
        new (self) LinearOptions{loss, constant, free_intercept, tol, max_epochs, seed};
      }, nb::kw_only(), "loss"_a, "constant"_a, "free_intercept"_a, "tol"_a, "max_epochs"_a, "seed"_a);
  define_fits<float>(m);
  define_fits<double>(m);
}
