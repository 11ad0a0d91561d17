"""A command of several nodes that meet by the variables they are given."""

MEETING = """
import os, socket, time
rank, count = int(os.environ[os.environ["ACCEL_NODE_INDEX_FROM"]]), int(os.environ["ACCEL_NODE_COUNT"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(address) as server:
        for _ in range(count - 1):
            other, _ = server.accept()
            print("met", other.makefile().readline().strip(), flush=True)
            other.sendall(b"done")
            other.close()
else:
    for _ in range(400):
        try:
            link = socket.create_connection(address)
            break
        except OSError:
            time.sleep(0.05)
    link.sendall(f"rank {rank}\\n".encode())
    print("heard", link.recv(10).decode(), flush=True)
"""
