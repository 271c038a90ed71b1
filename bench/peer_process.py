"""peer_process.py - the peers' processes, as the drivers (nets.py, operators.py) start them: who is there, and in what environment."""
import os, subprocess

NEEDS = {"torch": "torch", "compile": "torch", "jax": "jax", "tvm": "tvm"}
# glibc told to keep freed memory: without it the peers lose up to 40% in page faults.
MALLOC = {"MALLOC_TOP_PAD_": str(1 << 28), "MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 33)}


def environment(threads, folder, device="cpu"):
    """Variables of a peer's process. Compiled code is kept in `folder`. On a processor no GPU is looked for."""
    n = str(threads)
    where = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"} if device == "cpu" else {}
    return dict(os.environ, OMP_NUM_THREADS=n, MKL_NUM_THREADS=n, TVM_NUM_THREADS=n, TORCHINDUCTOR_CACHE_DIR=folder, **where, **MALLOC)


def parsed(ap):
    """The arguments of the command line. Folders and programs in them are absolute: processes are started in others."""
    args = ap.parse_args()
    args.build = os.path.abspath(args.build)
    if args.peer_python and os.sep in args.peer_python:
        args.peer_python = os.path.abspath(args.peer_python)
    return args


def there(python, wanted):
    """Those wanted that this Python has, and why each of the others is skipped."""
    if not python:
        return [], {p: "no Python with the peers: make bench-peers, or RICCI_PEER_PYTHON" for p in wanted}
    has = {m: not subprocess.run([python, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec('{m}'))"]).returncode
           for m in {NEEDS[p] for p in wanted}}
    return [p for p in wanted if has[NEEDS[p]]], {p: f"{python} has no {NEEDS[p]}" for p in wanted if not has[NEEDS[p]]}
