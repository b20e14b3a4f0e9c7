// Whether a sanitizer watches this build: it takes fault signals and memory limits for itself, so tests of those are skipped. g++ says
// it by macros, clang by features.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STET_UNDER_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STET_UNDER_SANITIZER 1
#endif
#endif
