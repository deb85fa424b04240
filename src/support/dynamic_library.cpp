// SPDX-License-Identifier: Apache-2.0
#include "support/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

namespace jitgemm {

Result<DynamicLibrary> DynamicLibrary::open(const std::vector<std::string>& names) {
  std::string tried;
  for (const std::string& name : names) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) {
      link_map* map = nullptr;
      std::string path = name;
      if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map != nullptr &&
          map->l_name != nullptr && map->l_name[0] != '\0') {
        path = map->l_name;
      }
      return DynamicLibrary(handle, std::move(path));
    }
    const char* reason = dlerror();
    if (!tried.empty()) tried += "; ";
    tried += reason != nullptr ? reason : name;
  }
  return io_error("no library could be loaded: " + tried);
}

void* DynamicLibrary::find(const char* symbol) const {
  return dlsym(handle_, symbol);
}

}  // namespace jitgemm
