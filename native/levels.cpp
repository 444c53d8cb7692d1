// Which CPU levels this machine can run, and which one is in use.
#include <atomic>
#include <cstring>

#include "kernels.h"

namespace nary {

extern const Kernels kernels_baseline;
#ifdef NARY_X86
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

namespace {

struct Levels {
  const Kernels* tables[3];
  int count = 0;

  Levels() noexcept {
    tables[count++] = &kernels_baseline;
#ifdef NARY_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      tables[count++] = &kernels_avx2;
      if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        tables[count++] = &kernels_avx512;
      }
    }
#endif
  }
};

const Levels& levels() noexcept {
  static const Levels found;
  return found;
}

std::atomic<const Kernels*>& current() noexcept {
  static std::atomic<const Kernels*> table{levels().tables[levels().count - 1]};
  return table;
}

}  // namespace

const Kernels* const* available_levels(int* count) noexcept {
  *count = levels().count;
  return levels().tables;
}

const Kernels& active() noexcept { return *current().load(); }

bool activate(const char* level) noexcept {
  for (int k = 0; k < levels().count; ++k) {
    if (std::strcmp(levels().tables[k]->level, level) == 0) {
      current().store(levels().tables[k]);
      return true;
    }
  }
  return false;
}

}  // namespace nary
