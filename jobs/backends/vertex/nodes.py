"""Jobs of several nodes: one machine in the first worker pool, the others in the second, and how they find each other.
Vertex AI sets CLUSTER_SPEC on every replica, JSON of {"cluster": {"workerpool0": ["<host>:<port>"], ...}, "task":
{"type": "workerpool1", "index": 0}, ...}; programs other than TensorFlow have to parse it. Source:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/distributed-training"""

from accel.contract import variables

from .labels import KIND

PORT, JAX_PORT = 29500, 1234
"""Ports of torchrun's examples (https://docs.pytorch.org/docs/stable/elastic/run.html), and of jax.distributed's."""

# Only shell builtins and expr, and neither $( nor $$, which could be read as variables of Vertex AI's.
# A key with its quotes and colon does not occur inside another value, where quotes are escaped.
# PyTorch Lightning reads NODE_RANK.
_PRELUDE = """\
case $CLUSTER_SPEC in
*'"workerpool0":'*'"task":'*'"type":'* | *'"task":'*'"type":'*'"workerpool0":'*) ;;
*) echo "accel: CLUSTER_SPEC does not tell of this node's task" >&2; exit 1 ;;
esac
accel_main=${CLUSTER_SPEC#*'"workerpool0":'} accel_task=${CLUSTER_SPEC#*'"task":'}
accel_main=${accel_main#*'"'}
accel_main=${accel_main%%'"'*}
accel_main=${accel_main%:*}
accel_type=${accel_task#*'"type":'} accel_node=${accel_task#*'"index":'}
accel_type=${accel_type#*'"'}
accel_type=${accel_type%%'"'*}
accel_node=${accel_node#"${accel_node%%[0-9]*}"}
accel_node=${accel_node%%[!0-9]*}
PET_RDZV_CONF=is_host=1
if [ "$accel_type" = workerpool0 ]; then accel_node=0
else accel_node=`expr "$accel_node" + 1`; PET_RDZV_CONF=is_host=0
fi
RANK=$accel_node NODE_RANK=$accel_node WORLD_SIZE=$ACCEL_NODE_COUNT PET_NODE_RANK=$accel_node JAX_PROCESS_ID=$accel_node
MASTER_ADDR=$accel_main MASTER_PORT=${ACCEL_MAIN_PORT} PET_RDZV_ENDPOINT=$accel_main:${ACCEL_MAIN_PORT}
JAX_COORDINATOR_ADDRESS=$accel_main:JAX_PORT
export RANK NODE_RANK WORLD_SIZE PET_NODE_RANK JAX_PROCESS_ID MASTER_ADDR MASTER_PORT PET_RDZV_ENDPOINT PET_RDZV_CONF
export JAX_COORDINATOR_ADDRESS
unset accel_main accel_task accel_type accel_node
exec "$@"
"""


def command(words: list[str], port: str) -> list[str]:
    """Return a node's command after code that reads its variables from CLUSTER_SPEC. It needs /bin/sh."""
    script = _PRELUDE.replace("${ACCEL_MAIN_PORT}", port).replace("JAX_PORT", str(JAX_PORT))
    return ["/bin/sh", "-c", script, "sh", *words]


def environment(name: str, count: int, gpus: int) -> dict[str, str]:
    """Return the variables that are the same on all nodes of a pool. `name` is the job's."""
    return {
        variables.NODE_COUNT: str(count),
        **variables.NODE_VARIABLES[KIND],
        "PET_NNODES": str(count),
        "PET_NPROC_PER_NODE": str(gpus or 1),
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ID": name,
        "JAX_NUM_PROCESSES": str(count),
    }


def rank_variables(port: str) -> dict[str, str]:
    """Return the variables of a node whose image has its own entry point, which no shell precedes. Vertex AI expands
    its own RANK and MASTER_ADDR in them, which it sets in jobs of several replicas without documenting them. Sources:
    https://github.com/Lightning-AI/pytorch-lightning/issues/13374,
    https://github.com/cellarium-ai/cellarium-ml/issues/56"""
    return {
        "PET_NODE_RANK": "$(RANK)",
        "PET_RDZV_ENDPOINT": f"$(MASTER_ADDR):{port}",
        "NODE_RANK": "$(RANK)",
        "JAX_PROCESS_ID": "$(RANK)",
        "JAX_COORDINATOR_ADDRESS": f"$(MASTER_ADDR):{JAX_PORT}",
    }
