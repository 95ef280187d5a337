{{- /*
What the schema cannot say. Each check writes a line with the value, the problem and the remedy; all of them are shown at
once.
*/ -}}
{{- define "svc.problems" -}}
{{- include "svc.guardProblems" . }}
{{- include "svc.publishingProblems" . }}
{{- include "svc.scalingProblems" . }}
{{- include "svc.storageProblems" . }}
{{- include "svc.redisProblems" . }}
{{- include "svc.podProblems" . }}
{{- include "svc.controllerProblems" . }}
{{- end }}

{{- define "svc.guardProblems" -}}
{{- with .Values.guard }}
{{- if .enabled }}
{{- if and (eq .type "promptGuard") (not .promptGuard.path) (not .promptGuard.existingClaim) }}
guard.type is promptGuard, but there is no model. Set guard.promptGuard.path to the model's folder in guard.image, or guard.promptGuard.existingClaim to a claim with the model.
{{- end }}
{{- if and .promptGuard.existingClaim .promptGuard.path (ne .promptGuard.path "/models") (not (hasPrefix "/models/" .promptGuard.path)) }}
guard.promptGuard.path is {{ .promptGuard.path }}, but the claim {{ .promptGuard.existingClaim }} is mounted at /models. Set a folder in it, such as /models/prompt-guard-2, or remove existingClaim.
{{- end }}
{{- range $type := list "llamaGuard" "custom" }}
{{- if and (eq $.Values.guard.type $type) (not (get $.Values.guard $type).endpoint) }}
guard.type is {{ $type }}, but guard.{{ $type }}.endpoint is empty. Set it to the URL of the classifier.
{{- end }}
{{- end }}
{{- if and (eq .type "llamaGuard") (not .model) }}
guard.type is llamaGuard, but guard.model is empty. Set it to the name of the model at guard.llamaGuard.endpoint.
{{- end }}
{{- end }}
{{- range .extraEnv }}
{{- if has .name (list "SVC_GUARD_STUB_INJECTION" "SVC_GUARD_TOKEN") }}
guard.extraEnv sets {{ .name }}, which the chart itself sets. Remove it and use guard.{{ ternary "stub.patterns" "llamaGuard.existingSecret or guard.custom.existingSecret" (eq .name "SVC_GUARD_STUB_INJECTION") }}.
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "svc.publishingProblems" -}}
{{- $external := .Values.gateway.externalProviderGateway }}
{{- $path := "gateway.externalProviderGateway" }}
{{- range $name := list "ingress" "httpRoute" }}
{{- if and (get $external $name).enabled (not $external.enabled) }}
{{ $path }}.{{ $name }}.enabled is true, but there is no external listener. Set {{ $path }}.enabled=true.
{{- end }}
{{- end }}
{{- if and $external.ingress.enabled (not $external.ingress.hosts) }}
{{ $path }}.ingress.hosts is empty, so the Ingress would answer for every host name. Name at least one host.
{{- end }}
{{- if and $external.httpRoute.enabled (not $external.httpRoute.parentRefs) }}
{{ $path }}.httpRoute.parentRefs is empty, so the route would attach to no Gateway. Name at least one.
{{- end }}
{{- with $external.service }}
{{- if and .loadBalancerSourceRanges (ne .type "LoadBalancer") }}
{{ $path }}.service.loadBalancerSourceRanges restricts nothing with the type {{ .type }}. Set {{ $path }}.service.type=LoadBalancer, or restrict clients by gateway.networkPolicy.externalFrom.
{{- end }}
{{- if and .loadBalancerClass (ne .type "LoadBalancer") }}
{{ $path }}.service.loadBalancerClass is set with the type {{ .type }}. Set {{ $path }}.service.type=LoadBalancer, or remove it.
{{- end }}
{{- if and .nodePort (eq .type "ClusterIP") }}
{{ $path }}.service.nodePort is set with the type ClusterIP. Set {{ $path }}.service.type=NodePort or LoadBalancer, or nodePort=0.
{{- end }}
{{- end }}
{{- range $external.trustedProxies }}
{{- if hasSuffix "/0" . }}
{{ $path }}.trustedProxies contains {{ . }}: every client could then choose its own address by X-Forwarded-For and pass each allowlist. Name only the addresses of your proxies.
{{- end }}
{{- end }}
{{- end }}

{{- define "svc.scalingProblems" -}}
{{- $gateway := .Values.gateway }}
{{- range $component := list "gateway" "guard" }}
{{- $values := get $.Values $component }}
{{- with $values.autoscaling }}
{{- if .enabled }}
{{- if gt (int64 .minReplicas) (int64 .maxReplicas) }}
{{ $component }}.autoscaling.minReplicas ({{ .minReplicas }}) is greater than maxReplicas ({{ .maxReplicas }}). Swap them.
{{- end }}
{{- $requests := dig "requests" dict $values.resources }}
{{- range $resource, $value := dict "cpu" "targetCPUUtilizationPercentage" "memory" "targetMemoryUtilizationPercentage" }}
{{- if and (get $values.autoscaling $value) (not (get $requests $resource)) }}
{{ $component }}.autoscaling.{{ $value }} is a percentage of {{ $component }}.resources.requests.{{ $resource }}, which is missing. Set {{ $component }}.resources.requests.{{ $resource }}, or {{ $value }}=0.
{{- end }}
{{- end }}
{{- if not (or .targetCPUUtilizationPercentage .targetMemoryUtilizationPercentage) }}
{{ $component }}.autoscaling has no target. Set targetCPUUtilizationPercentage or targetMemoryUtilizationPercentage.
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $component := list "gateway" "controller" "guard" }}
{{- $budget := (get $.Values $component).podDisruptionBudget }}
{{- $min := toString $budget.minAvailable }}
{{- $max := toString $budget.maxUnavailable }}
{{- if $budget.enabled }}
{{- if and (ne $min "") (ne $max "") }}
{{ $component }}.podDisruptionBudget has both minAvailable and maxUnavailable. Set one of them to "".
{{- end }}
{{- if and (eq $min "") (eq $max "") }}
{{ $component }}.podDisruptionBudget has neither minAvailable nor maxUnavailable. Set one of them, or enabled=false.
{{- end }}
{{- if or (eq $max "0") (eq $max "0%") (eq $min "100%") }}
{{ $component }}.podDisruptionBudget allows no disruption, so no node with such a pod could be drained. Allow at least one pod.
{{- end }}
{{- end }}
{{- end }}
{{- $limit := dig "limits" "memory" "" $gateway.resources | toString }}
{{- if $limit }}
{{- $needed := add (int64 $gateway.envoy.heapBytes) (mul 512 1048576) }}
{{- if lt (include "svc.bytes" $limit | int64) $needed }}
gateway.resources.limits.memory ({{ $limit }}) is less than gateway.envoy.heapBytes and 512 MiB for the service ({{ div (add $needed 1048575) 1048576 }}Mi), so the kernel would kill the gateway before it sheds load. Raise the limit or lower heapBytes.
{{- end }}
{{- end }}
{{- end }}

{{- /* A quantity of Kubernetes as a number of bytes. */ -}}
{{- define "svc.bytes" -}}
{{- $factors := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- $suffix := regexFind "[A-Za-z]*$" . }}
{{- mulf (trimSuffix $suffix . | float64) (get $factors $suffix | default 1) | int64 }}
{{- end }}

{{- /* "true" if the chart's audit volume attaches to one node only. */ -}}
{{- define "svc.auditOnOneNode" -}}
{{- with .Values.gateway.audit }}
{{- if and .enabled .persistence.enabled (not .persistence.existingClaim) (not (has "ReadWriteMany" .persistence.accessModes)) }}true{{ end }}
{{- end }}
{{- end }}

{{- define "svc.storageProblems" -}}
{{- $gateway := .Values.gateway }}
{{- if include "svc.auditOnOneNode" . }}
{{- if or $gateway.autoscaling.enabled (gt (int64 $gateway.replicas) 1) }}
gateway.audit.persistence.accessModes has no ReadWriteMany, but several gateway pods share the volume. Use a StorageClass with ReadWriteMany, or gateway.replicas=1 without autoscaling.
{{- end }}
{{- end }}
{{- end }}

{{- define "svc.redisProblems" -}}
{{- $redis := .Values.redis }}
{{- if and $redis.externalUrl (not $redis.enabled) }}
redis.externalUrl is set, but redis.enabled is false. Set redis.enabled=true, or remove the address.
{{- end }}
{{- if regexMatch "^rediss?://[^/]*@" $redis.externalUrl }}
redis.externalUrl contains a user or a password, which everyone who reads the Deployment would see. Store them in a Secret and name it in redis.existingSecret.
{{- end }}
{{- if and $redis.existingSecretKeys.url $redis.externalUrl }}
redis.externalUrl and redis.existingSecretKeys.url are both set. Remove one of them.
{{- end }}
{{- range $name := list "url" "username" }}
{{- if and (get $redis.existingSecretKeys $name) (not $redis.existingSecret) }}
redis.existingSecretKeys.{{ $name }} is set, but redis.existingSecret is empty. Name the Secret that has the key.
{{- end }}
{{- end }}
{{- if and (include "svc.redisBuiltIn" .) (not $redis.existingSecretKeys.password) }}
redis.existingSecretKeys.password is empty, but the built-in Redis always has a password. Set it to redis-password.
{{- end }}
{{- if and (include "svc.redisBuiltIn" .) $redis.existingSecretKeys.username }}
redis.existingSecretKeys.username is set, but the built-in Redis has only the default user. Set it to "".
{{- end }}
{{- if and $redis.enabled $redis.tls.enabled (not $redis.tls.existingSecret) }}
redis.tls.enabled is true, but redis.tls.existingSecret is empty. Name a Secret with ca.crt{{ if include "svc.redisBuiltIn" . }}, tls.crt and tls.key{{ end }}; an existing Redis with a public certificate needs only an address with rediss://.
{{- end }}
{{- end }}

{{- define "svc.podProblems" -}}
{{- range $component := list "gateway" "controller" "redis" "guard" "tests" }}
{{- $values := get $.Values $component }}
{{- range $key, $_ := $values.podLabels }}
{{- if hasPrefix "app.kubernetes.io/" $key }}
{{ $component }}.podLabels sets {{ $key }}, by which Services, policies and budgets find the pods. Use a label with another prefix.
{{- end }}
{{- end }}
{{- if hasKey $values "serviceAccount" }}
{{- if and (not $values.serviceAccount.create) (not $values.serviceAccount.name) }}
{{ $component }}.serviceAccount.create is false and its name is empty. Name the ServiceAccount that exists.
{{- end }}
{{- end }}
{{- range (get $values "extraEnv" | default list) }}
{{- if or (has .name (list "NODE_OPTIONS" "POD_NAME" "POD_NAMESPACE")) (hasPrefix "SVC_REDIS_" .name) }}
{{ $component }}.extraEnv sets {{ .name }}, which {{ if eq .name "NODE_OPTIONS" }}changes how the process runs{{ else }}the chart itself sets{{ end }}. Remove it{{ if hasPrefix "SVC_REDIS_" .name }} and use the values under redis{{ end }}.
{{- end }}
{{- end }}
{{- end }}
{{- range $key, $_ := .Values.commonLabels }}
{{- if hasPrefix "app.kubernetes.io/" $key }}
commonLabels sets {{ $key }}, which the chart itself sets. Use a label with another prefix.
{{- end }}
{{- end }}
{{- end }}

{{- define "svc.controllerProblems" -}}
{{- with .Values.controller.leaderElection }}
{{- if ge (int64 .renewSeconds) (int64 .leaseSeconds) }}
controller.leaderElection.renewSeconds ({{ .renewSeconds }}) must be less than leaseSeconds ({{ .leaseSeconds }}), so that a leader gives up before another begins. Lower renewSeconds.
{{- end }}
{{- end }}
{{- if eq (int64 .Values.agents.sidecar.uid) 65532 }}
agents.sidecar.uid is 65532, the default user of agents: their connections would not be redirected to the sidecar. Use another user ID, for example 65533.
{{- end }}
{{- if and .Values.agents.networkPolicy.enabled (not .Values.agents.networkPolicy.dnsPodLabels) }}
agents.networkPolicy.dnsPodLabels is empty, so agents could reach port 53 of every pod in {{ .Values.agents.networkPolicy.dnsNamespace }}. Name the labels of the DNS pods.
{{- end }}
{{- end }}
