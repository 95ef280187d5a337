{{- /* What works, but may surprise: one line each, shown after an installation. */ -}}
{{- define "svc.warnings" -}}
{{- $gateway := .Values.gateway }}
{{- $external := $gateway.externalProviderGateway }}
{{- $several := or $gateway.autoscaling.enabled (gt (int64 $gateway.replicas) 1) }}
{{- if not .Values.redis.enabled }}
{{- if $several }}
redis.enabled is false with several gateway pods: each pod counts alone, so limits and budgets hold for each pod, not for all together. Set redis.enabled=true.
{{- end }}
Without Redis, counters begin at zero when a gateway pod restarts.
{{- end }}
{{- if and $gateway.audit.enabled (not $gateway.audit.persistence.enabled) (not $gateway.audit.persistence.existingClaim) }}
The audit chain is in an emptyDir: deleting a gateway pod deletes its records. Set gateway.audit.persistence.enabled=true.
{{- end }}
{{- if and (or $external.ingress.enabled $external.httpRoute.enabled) (not $external.trustedProxies) }}
gateway.externalProviderGateway.trustedProxies is empty: every call seems to come from the proxy in front of the gateway, so allowlists of client addresses refuse or allow all. Add the proxy's CIDR blocks.
{{- end }}
{{- if and $external.ingress.enabled (not $external.ingress.tls) }}
The Ingress has no TLS: access keys would cross the network in plain text, unless something in front of it ends TLS. Set gateway.externalProviderGateway.ingress.tls.
{{- end }}
{{- if and (not (default .Values.images.registry .Values.global.imageRegistry)) }}
images.registry is empty: nodes take the images from the container runtime's default registry or from their own store. Set images.registry.
{{- end }}
{{- if not .Values.agents.networkPolicy.enabled }}
agents.networkPolicy.enabled is false: only the rules inside of the pod keep an agent from the network around its sidecar. Set agents.networkPolicy.enabled=true.
{{- end }}
{{- if eq .Values.agents.interception "sysctl" }}
agents.interception is sysctl: an agent with Providers can open connections to port 443 of any address, around its sidecar. Use init where the cluster allows NET_ADMIN.
{{- end }}
{{- if and $gateway.networkPolicy.enabled (or .Values.monitoring.podMonitor.enabled .Values.monitoring.serviceMonitor.enabled) (not .Values.monitoring.scrapeFrom) }}
monitoring.scrapeFrom is empty: the NetworkPolicies keep Prometheus out. Name its namespace.
{{- end }}
{{- if and .Values.guard.enabled (eq .Values.guard.type "stub") }}
guard.type is stub: it finds only the phrases of guard.stub.patterns. Use it for trials.
{{- end }}
{{- if and .Values.guard.enabled (not .Values.guard.networkPolicy.enabled) }}
guard.networkPolicy.enabled is false: every pod of the cluster can ask the classifier. Set guard.networkPolicy.enabled=true.
{{- end }}
{{- if not .Values.crds.install }}
crds.install is false: upgrade the CustomResourceDefinitions before the chart.
{{- end }}
{{- if not .Values.rbac.create }}
rbac.create is false: an administrator must grant the rules in docs/kubernetes.md.
{{- end }}
{{- end }}
