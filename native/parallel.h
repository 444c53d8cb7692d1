// Plain threads over numbered items. Which thread takes an item is left to chance, so no result may depend on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace nary {

// Calls work(thread, item) for every item; the first exception of any call is thrown here after all threads ended.
template <class Work>
void parallel_for(std::int64_t n_items, int n_threads, const Work& work) {
  std::atomic<std::int64_t> next{0};
  std::exception_ptr error;
  std::mutex guard;
  const auto run = [&](int thread) {
    try {
      for (std::int64_t item = next++; item < n_items; item = next++) work(thread, item);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(guard);
      if (!error) error = std::current_exception();
      next = n_items;
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(n_threads));
  for (int thread = 1; thread < n_threads && thread < n_items; ++thread) {
    try {
      threads.emplace_back(run, thread);
    } catch (const std::system_error&) {
      break;  // the machine gives no more threads: those that started do the work
    }
  }
  run(0);
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace nary
