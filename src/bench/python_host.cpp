// SPDX-License-Identifier: Apache-2.0
#include "bench/python_host.h"

#include "support/dynamic_library.h"

#include <fmt/format.h>

#include <array>
#include <dlfcn.h>

namespace jitgemm::bench {
namespace {

// What Python writes its answer to: addresses of callbacks, or an error's text.
struct Answer {
  PeerFunctions functions;
  std::array<char, 64> name = {};
  std::array<char, 1024> error = {};
};

// Loads the file as a module, and wraps its functions into callbacks with the C interface. ctypes
// holds the interpreter's lock while one runs. Everything that must live is kept in a list that is
// never dropped.
constexpr const char* kGlue = R"py(
import ctypes, importlib.util, types

def _jitgemm_load(path, answer):
    class Set(ctypes.Structure):
        _fields_ = [(n, ctypes.c_uint64) for n in (
            "a", "b", "a_scales", "b_scales", "a_scales_column_major", "b_scales_padded", "out")]
    class Problem(ctypes.Structure):
        _fields_ = [(n, ctypes.c_int64) for n in (
            "m", "n", "k", "padded_m", "k_blocks", "padded_k_blocks", "n_blocks")]
        _fields_ += [("out_bytes", ctypes.c_int32), ("set_count", ctypes.c_int32),
                     ("sets", ctypes.POINTER(Set))]
    class GroupedSet(ctypes.Structure):
        _fields_ = [(n, ctypes.c_uint64) for n in (
            "a", "b", "a_scales", "b_scales", "a_scales_column_major", "out")]
    class GroupedProblem(ctypes.Structure):
        _fields_ = [(n, ctypes.c_int64) for n in (
            "groups", "rows", "n", "k", "matrices", "scale_rows", "k_blocks", "n_blocks",
            "expected_rows")]
        _fields_ += [(n, ctypes.c_int32) for n in ("layout", "out_bytes", "set_count", "reserved")]
        _fields_ += [("group_rows", ctypes.c_uint64), ("counts", ctypes.POINTER(ctypes.c_int64)),
                     ("sets", ctypes.POINTER(GroupedSet))]
    class Answer(ctypes.Structure):
        _fields_ = [("open", ctypes.c_void_p), ("open_grouped", ctypes.c_void_p), ("launch", ctypes.c_void_p),
                    ("programmatic", ctypes.c_void_p), ("close", ctypes.c_void_p), ("name", ctypes.c_char * 64),
                    ("error", ctypes.c_char * 1024)]
    answer = Answer.from_address(answer)
    peers = {}

    def guarded(error, size, work):
        try:
            work()
            return 0
        except BaseException as problem:
            text = f"{type(problem).__name__}: {problem}".encode()[: size - 1] + b"\0"
            ctypes.memmove(error, text, len(text))
            return 1

    def plain(structure, leave_out=()):
        names = [f[0] for f in structure._fields_ if f[0] not in leave_out]
        return types.SimpleNamespace(**{n: getattr(structure, n) for n in names})

    def opened(function, p, peer):
        given = plain(p, ("sets", "counts", "reserved"))
        given.sets = [plain(p.sets[i]) for i in range(p.set_count)]
        if hasattr(p, "counts"):
            given.counts = p.counts[:p.groups]
        handle = max(peers, default=0) + 1
        peers[handle] = function(given)
        peer[0] = handle

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(Problem), ctypes.POINTER(ctypes.c_void_p),
                      ctypes.c_void_p, ctypes.c_size_t)
    def open_peer(problem, peer, error, size):
        return guarded(error, size, lambda: opened(module.open, problem.contents, peer))

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(GroupedProblem),
                      ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_size_t)
    def open_grouped(problem, peer, error, size):
        return guarded(error, size, lambda: opened(module.open_grouped, problem.contents, peer))

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p,
                      ctypes.c_void_p, ctypes.c_size_t)
    def launch(peer, index, stream, error, size):
        return guarded(error, size, lambda: module.launch(peers[peer], index, stream or 0))

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    def programmatic(peer, error, size):
        return guarded(error, size, lambda: module.programmatic(peers[peer]))

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def close(peer):
        peers.pop(peer, None)

    def load():
        nonlocal module
        spec = importlib.util.spec_from_file_location("jitgemm_peer_module", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        answer.name = module.name.encode()[:63]
        for function in (module.open, module.launch):
            if not callable(function):
                raise TypeError("open and launch must be functions")
        if callable(getattr(module, "open_grouped", None)):
            answer.open_grouped = ctypes.cast(open_grouped, ctypes.c_void_p).value
        if callable(getattr(module, "programmatic", None)):
            answer.programmatic = ctypes.cast(programmatic, ctypes.c_void_p).value
        _jitgemm_kept.append((module, open_peer, open_grouped, launch, programmatic, close))
        answer.open, answer.launch, answer.close = (
            ctypes.cast(f, ctypes.c_void_p).value for f in (open_peer, launch, close))

    module = None
    guarded(ctypes.addressof(answer) + Answer.error.offset, Answer.error.size, load)

_jitgemm_kept = globals().get("_jitgemm_kept", [])
)py";

// A Python string literal, whatever the path holds.
std::string quoted(const std::string& text) {
  std::string literal = "b'";
  for (const unsigned char c : text) literal += fmt::format("\\x{:02x}", c);
  return literal + "'.decode()";
}

}  // namespace

Status load_python_peer(const std::string& file, const std::string& python_library,
                        PeerFunctions& functions, std::string& name) {
  std::vector<std::string> names = {python_library};
  if (python_library.empty()) {
    names.clear();
    for (int minor = 14; minor >= 9; --minor) {
      names.push_back(fmt::format("libpython3.{}.so.1.0", minor));
    }
  }
  Result<DynamicLibrary> library = DynamicLibrary::open(names);
  if (!library) return unsupported("--peer: no Python library: " + library.error().message());
  // Extension modules look for the interpreter's symbols among the global ones.
  if (dlopen(library->path().c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) == nullptr) {
    return unsupported(fmt::format("--peer: {} cannot be made global", library->path()));
  }
  const auto initialize = reinterpret_cast<void (*)(int)>(library->find("Py_InitializeEx"));
  const auto run = reinterpret_cast<int (*)(const char*)>(library->find("PyRun_SimpleString"));
  if (initialize == nullptr || run == nullptr) {
    return unsupported(fmt::format("--peer: {} is no Python library", library->path()));
  }
  // Of a second call nothing happens. Without signal handlers: this process keeps its own.
  initialize(0);
  Answer answer;
  const std::string script = kGlue + fmt::format("\n_jitgemm_load({}, {})\n", quoted(file),
                                                 reinterpret_cast<uintptr_t>(&answer));
  if (run(script.c_str()) != 0) return internal_error("--peer: Python did not run; see its words");
  if (answer.error[0] != '\0') {
    return invalid_argument(fmt::format("--peer: {}: {}", file, answer.error.data()));
  }
  functions = answer.functions;
  name = answer.name.data();
  return ok_status();
}

}  // namespace jitgemm::bench
