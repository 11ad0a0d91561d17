"""Cases of the policies of machines."""

import json

from policy.resource import UNSEEN

from .shapes import CLUSTER, DEFINITION, DIGEST, EC2, POOL, TEMPLATE, Case, each, node, one

SHIELD = {"enableSecureBoot": True, "enableIntegrityMonitoring": True}
OTHERS_DRIVER = [{"type": "nvidia-l4", "gpuDriverInstallationConfig": {"gpuDriverVersion": "INSTALLATION_DISABLED"}}]


CASES: dict[str, Case] = {
    "imdsv2": each(
        [
            one(TEMPLATE, metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 1.0}),
            one(TEMPLATE, metadataOptions={"httpEndpoint": "disabled"}),
        ],
        [
            (one(TEMPLATE), "httpTokens is not required"),
            (one(EC2, metadataOptions={"httpTokens": "optional"}), "httpTokens is not required"),
            (
                one(TEMPLATE, metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 2}),
                "httpPutResponseHopLimit is 2, more than 1",
            ),
        ],
        [(one(TEMPLATE, metadataOptions=UNSEEN), "metadataOptions.httpEndpoint")],
    ),
    "no-privileged-jobs": each(
        [
            one(DEFINITION, containerProperties=json.dumps({"image": DIGEST})),
            one(DEFINITION, containerProperties=json.dumps({"privileged": False})),
        ],
        [
            (one(DEFINITION, containerProperties=json.dumps({"privileged": True})), "containerProperties.privileged"),
            (
                one(
                    DEFINITION,
                    nodeProperties=json.dumps({"nodeRangeProperties": [{"container": {"privileged": True}}]}),
                ),
                "nodeProperties.nodeRangeProperties[0].container[0].privileged",
            ),
        ],
        [(one(DEFINITION, containerProperties=UNSEEN), "containerProperties")],
    ),
    "shielded-nodes": each(
        [
            one(CLUSTER, enableShieldedNodes=True),
            node(shieldedInstanceConfig=SHIELD),
            node(shieldedInstanceConfig={"enableSecureBoot": False}, guestAccelerators=OTHERS_DRIVER),
        ],
        [
            (one(CLUSTER, enableShieldedNodes=False), "enableShieldedNodes is false"),
            (node(machineType="g2-standard-8"), "enableSecureBoot is not true"),
            (
                node(shieldedInstanceConfig={"enableSecureBoot": True, "enableIntegrityMonitoring": False}),
                "enableIntegrityMonitoring is false",
            ),
        ],
        [(node(shieldedInstanceConfig=UNSEEN), "nodeConfig.shieldedInstanceConfig.enableIntegrityMonitoring")],
    ),
    "workload-identity": each(
        [
            one(CLUSTER, workloadIdentityConfig={"workloadPool": "p.svc.id.goog"}),
            one(CLUSTER, enableAutopilot=True),
            node(workloadMetadataConfig={"mode": "GKE_METADATA"}),
        ],
        [
            (one(CLUSTER, location="us-central1"), "workloadPool is not set"),
            (node(workloadMetadataConfig={"mode": "GCE_METADATA"}), "pods get the node's credentials"),
            (node(), "is not GKE_METADATA"),
        ],
        [(one(CLUSTER, workloadIdentityConfig={"workloadPool": UNSEEN}), "workloadIdentityConfig.workloadPool")],
    ),
    "private-nodes": each(
        [
            one(CLUSTER, privateClusterConfig={"enablePrivateNodes": True}),
            one(POOL, networkConfig={"enablePrivateNodes": True}),
            one(POOL, location="us-central1"),
        ],
        [
            (one(CLUSTER, location="us-central1"), "enablePrivateNodes is not true"),
            (one(POOL, networkConfig={"enablePrivateNodes": False}), "enablePrivateNodes is false"),
        ],
        [(one(CLUSTER, privateClusterConfig=UNSEEN), "privateClusterConfig.enablePrivateNodes")],
    ),
}
