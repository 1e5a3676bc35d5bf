"""JSON schemas of the parts of Kubernetes and Compose files that we use: an unknown or misplaced key is a mistake.

Made from the public schemas of Kubernetes 1.37 and of the Compose specification, and no wider than our files need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Schema: TypeAlias = Mapping[str, object]


def obj(required: str = "", /, **properties: Schema) -> Schema:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def many(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}


def table(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def one(*words: str) -> Schema:
    return {"enum": list(words)}


TEXT: Schema = {"type": "string", "minLength": 1}
YES_NO: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "integer", "minimum": 0}
NAME: Schema = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
QUANTITY: Schema = {"type": "string", "pattern": r"^[0-9]+(m|Mi|Gi)?$"}
LABELS = table(TEXT)
SELECTOR = obj("matchLabels", matchLabels=LABELS)
META = obj("name", name=NAME, labels=LABELS)
PORT: Schema = {"anyOf": [NAME, {"type": "integer", "minimum": 1, "maximum": 65_535}]}
PROBE = obj(
    "httpGet periodSeconds",
    httpGet=obj("path port", path={"type": "string", "pattern": "^/"}, port=PORT),
    periodSeconds=NUMBER,
    timeoutSeconds=NUMBER,
    failureThreshold=NUMBER,
)
CONTAINER = obj(
    "name image ports securityContext resources livenessProbe readinessProbe startupProbe",
    name=NAME,
    image=TEXT,
    ports=many(obj("name containerPort", name=NAME, containerPort=NUMBER)),
    envFrom=many(obj("secretRef", secretRef=obj("name", name=NAME))),
    startupProbe=PROBE,
    livenessProbe=PROBE,
    readinessProbe=PROBE,
    resources=obj("requests limits", requests=table(QUANTITY), limits=table(QUANTITY)),
    securityContext=obj(
        "allowPrivilegeEscalation readOnlyRootFilesystem capabilities",
        allowPrivilegeEscalation={"const": False},
        readOnlyRootFilesystem={"const": True},
        capabilities=obj("drop", drop={"const": ["ALL"]}),
    ),
    volumeMounts=many(obj("name mountPath", name=NAME, mountPath=TEXT, readOnly=YES_NO)),
)
POD = obj(
    "serviceAccountName automountServiceAccountToken enableServiceLinks securityContext containers volumes",
    serviceAccountName=NAME,
    automountServiceAccountToken={"const": False},
    enableServiceLinks={"const": False},
    terminationGracePeriodSeconds=NUMBER,
    securityContext=obj(
        "runAsNonRoot runAsUser seccompProfile",
        runAsNonRoot={"const": True},
        runAsUser=NUMBER,
        runAsGroup=NUMBER,
        fsGroup=NUMBER,
        fsGroupChangePolicy=one("OnRootMismatch", "Always"),
        seccompProfile=obj("type", type=one("RuntimeDefault")),
    ),
    topologySpreadConstraints=many(
        obj(
            "maxSkew topologyKey whenUnsatisfiable labelSelector",
            maxSkew=NUMBER,
            topologyKey=TEXT,
            whenUnsatisfiable=one("ScheduleAnyway", "DoNotSchedule"),
            labelSelector=SELECTOR,
        )
    ),
    containers=many(CONTAINER),
    volumes=many(
        obj(
            "name",
            name=NAME,
            persistentVolumeClaim=obj("claimName", claimName=NAME),
            configMap=obj("name", name=NAME),
            emptyDir=obj(sizeLimit=QUANTITY),
        )
    ),
)


def kind(version: str, name: str, required: str = "", /, **more: Schema) -> Schema:
    known = {"apiVersion": {"const": version}, "kind": {"const": name}, "metadata": META}
    return obj(f"apiVersion kind metadata {required}", **known, **more)


_CIDR = obj("ipBlock", ipBlock=obj("cidr", cidr=TEXT, **{"except": many(TEXT)}))
KUBERNETES: Mapping[str, Schema] = {
    "ServiceAccount": kind("v1", "ServiceAccount", automountServiceAccountToken={"const": False}),
    "ConfigMap": kind("v1", "ConfigMap", "data", data=table({"type": "string"})),
    "Secret": kind("v1", "Secret", "stringData", type=one("Opaque"), stringData=table({"type": "string"})),
    "PersistentVolumeClaim": kind(
        "v1",
        "PersistentVolumeClaim",
        "spec",
        spec=obj(
            "accessModes resources",
            accessModes=many(one("ReadWriteOnce", "ReadWriteMany")),
            resources=obj("requests", requests=obj("storage", storage=QUANTITY)),
        ),
    ),
    "Deployment": kind(
        "apps/v1",
        "Deployment",
        "spec",
        spec=obj(
            "replicas strategy selector template",
            replicas={"type": "integer", "minimum": 1},
            strategy=obj(
                "type",
                type=one("Recreate", "RollingUpdate"),
                rollingUpdate=obj("maxUnavailable maxSurge", maxUnavailable=NUMBER, maxSurge=NUMBER),
            ),
            minReadySeconds=NUMBER,
            selector=SELECTOR,
            template=obj("metadata spec", metadata=obj("labels", labels=LABELS), spec=POD),
        ),
    ),
    "Service": kind(
        "v1",
        "Service",
        "spec",
        spec=obj(
            "selector ports",
            selector=LABELS,
            ports=many(obj("port targetPort", name=NAME, port=PORT, targetPort=PORT)),
        ),
    ),
    "ServiceMonitor": kind(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        "spec",
        spec=obj(
            "selector endpoints",
            selector=SELECTOR,
            endpoints=many(
                obj(
                    "port path authorization",
                    port=NAME,
                    path=TEXT,
                    interval=TEXT,
                    authorization=obj(
                        "credentials", type=one("Bearer"), credentials=obj("name key", name=NAME, key=TEXT)
                    ),
                )
            ),
        ),
    ),
    "PodDisruptionBudget": kind(
        "policy/v1",
        "PodDisruptionBudget",
        "spec",
        spec=obj("selector", maxUnavailable=NUMBER, minAvailable=NUMBER, selector=SELECTOR),
    ),
    "NetworkPolicy": kind(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "spec",
        spec=obj(
            "podSelector policyTypes ingress egress",
            podSelector=SELECTOR,
            policyTypes=many(one("Ingress", "Egress")),
            ingress=many(obj("ports", ports=many(obj("port", port=PORT)))),
            egress=many(obj("to", to=many(_CIDR))),
        ),
    ),
}

_SERVICE = obj(
    "",
    image=TEXT,
    build=obj("context dockerfile", context=TEXT, dockerfile=TEXT),
    restart=one("unless-stopped"),
    read_only={"const": True},
    cap_drop={"const": ["ALL"]},
    cap_add=many(TEXT),
    security_opt={"const": ["no-new-privileges:true"]},
    tmpfs=many(TEXT),
    pids_limit=NUMBER,
    mem_limit={"type": "string", "pattern": "^[0-9]+[mg]$"},
    shm_size={"type": "string", "pattern": "^[0-9]+[mg]$"},
    stop_grace_period={"type": "string", "pattern": "^[0-9]+s$"},
    ports=many({"type": "string", "pattern": r"^127\.0\.0\.1:[0-9]+:[0-9]+$"}),
    volumes=many({"type": "string", "pattern": "^([a-z]+|\\./[a-z.]+):/"}),
    environment=table({"type": "string"}),
    depends_on=table(obj("condition", condition=one("service_healthy", "service_started"))),
    healthcheck=obj("test", test=many(TEXT), interval=TEXT, timeout=TEXT, start_period=TEXT, retries=NUMBER),
)
COMPOSE = obj(
    "services volumes", name=NAME, services=table(_SERVICE), volumes=table({"const": {}}), **{"x-gateway": _SERVICE}
)
