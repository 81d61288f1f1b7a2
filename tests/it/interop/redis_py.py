"""The other side of interop.rs: redis-py's Lock on the key of ours.

Usage: redis_py.py PORT KEY try
       redis_py.py PORT KEY hold
       redis_py.py PORT KEY count FILE ROUNDS
"""

import sys
import time

import redis

port, key, role = sys.argv[1:4]
lock = redis.Redis(port=int(port)).lock(key, timeout=30, sleep=0.002, blocking_timeout=55)

if role == "try":
    print(lock.acquire(blocking=False))
elif role == "hold":
    assert lock.acquire()
    print("held", flush=True)
    sys.stdin.readline()
    lock.release()
elif role == "count":
    file, rounds = sys.argv[4], int(sys.argv[5])
    for _ in range(rounds):
        with lock:
            with open(file) as count:
                before = int(count.read())
            time.sleep(0.001)
            with open(file, "w") as count:
                count.write(str(before + 1))
