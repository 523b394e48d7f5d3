#!/usr/bin/env bash
# `patch.sh FOLDER`: edits a copy of Wukong's source tree so that GCC 12 builds it and several servers run on one machine. Each edit must
# match at least one line; otherwise the tree is of another version, and the script stops.
set -euo pipefail
cd "$1"

# `edit FILE PATTERN REPLACEMENT`: replaces the extended regular expression on each line that matches it.
edit() {
  if ! grep -qE -- "$2" "$1"; then
    echo "patch.sh: $1 has no line that matches: $2" >&2
    exit 1
  fi
  sed -i -E "s~$2~$3~" "$1"
}

# GCC 12 assumes that a reference is never null. The default argument becomes a variable of the thread; the later null test then always passes.
edit core/store/gstore.hpp '\*\(int \*\)NULL' 'unused_type()'
edit core/store/gstore.hpp '^class GStore \{' 'static inline int \&unused_type() { static thread_local int type; return type; }\nclass GStore {'
# A function that ends without its return value continues into whatever follows it.
edit core/wukong.cpp '^    engine->run\(\);' '    engine->run();\n    return NULL;'
edit utils/math.hpp '^        (binary_search_tuple_recursive\(N, vec, target, 0)' '        return \1'
edit core/query.hpp 'int set_attr_col_num' 'void set_attr_col_num'
edit core/wukong.cpp '^    run_console\(proxy\);' '    run_console(proxy);\n    return NULL;'

# Every server binds its ports on all addresses, so two servers on one machine collide. Each binds its own address of the hosts file instead.
edit core/comm/tcp_adaptor.hpp '"tcp://\*:%d", port_code\(tid\)' '"tcp://%s:%d", ipset[sid].c_str(), port_code(tid)'
# Every server pins its engine to the same processor. The operating system places threads instead, as it does those of Vervet.
edit core/bind.hpp 'if \(sched_setaffinity\(0, sizeof\(mask\), &mask\) != 0\)' 'if (false)'

# The console prints the mean of repeated queries. It also prints the median.
edit core/proxy.hpp '^        for \(int i = 0; i < cnt; i\+\+\) \{' '        std::vector<uint64_t> latencies;\n        for (int i = 0; i < cnt; i++) {'
edit core/proxy.hpp '^            request.result.blind = i < ' '            uint64_t begin = timer::get_usec();\n            request.result.blind = i < '
edit core/proxy.hpp '^            reply = recv_reply\(\);' '            reply = recv_reply();\n            latencies.push_back(timer::get_usec() - begin);'
edit core/proxy.hpp '^            logstream\(LOG_INFO\) << "\(last\) result size' \
  '            std::sort(latencies.begin(), latencies.end());\n            logstream(LOG_INFO) << "median latency: " << latencies[cnt / 2] << LOG_endl;\n&'

# With `-DWAITS`, an engine without work waits for a message, and a proxy waits for the others asleep. Without it both poll, and the processor
# time of a server is that of its polling.
edit core/comm/tcp_adaptor.hpp '^    bool tryrecv\(int tid, string &str\) \{' \
  '    void wait(int tid) {\n        zmq_pollitem_t item = { static_cast<void *>(*receivers[tid]), 0, ZMQ_POLLIN, 0 };\n        zmq_poll(\&item, 1, 10);\n    }\n\n&'
edit core/engine/engine.hpp '^            if \(at_work\) continue;.*' '&\n#ifdef WAITS\n            adaptor->tcp->wait(tid);\n            continue;\n#endif'
edit core/console.hpp '^        MPI_Barrier\(MPI_COMM_WORLD\);' \
  '    {\n#ifdef WAITS\n        MPI_Request request;\n        int done = 0;\n        MPI_Ibarrier(MPI_COMM_WORLD, \&request);\n        for (; !done; usleep(2000))\n            MPI_Test(\&request, \&done, MPI_STATUS_IGNORE);\n#else\n        MPI_Barrier(MPI_COMM_WORLD);\n#endif\n    }'
