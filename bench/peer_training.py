"""peer_training.py - times a peer's training step: what peer_capsnet.py and peer_lstm.py share."""
import json, resource, time


def measure(step, seconds, start):
    """Prints as JSON: median and least time of a step in ms, when the first was done (seconds after `start`), peak memory in MB."""
    step()
    first = time.time() - start
    for _ in range(3):
        step()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        t = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - t))
    print(json.dumps({"step_ms": sorted(times)[len(times) // 2], "least_ms": min(times), "first_s": first,
                      "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
