{{- define "svc.gatewayConfig" -}}
{{- with .Values.gateway -}}
listen: {address: "0.0.0.0", port: 8000}
{{- if .externalProviderGateway.enabled }}
external: {address: "0.0.0.0", port: 8080}
{{- else }}
external: null
{{- end }}
trustedProxies: {{ toJson .externalProviderGateway.trustedProxies }}
{{- if .upstreamCaConfigMap }}
upstreamCaFile: /etc/svc-upstream-ca/ca.crt
{{- end }}
mcp:
  allowedOrigins: {{ toJson .mcp.allowedOrigins }}
  allowedHosts: {{ toJson .mcp.allowedHosts }}
namespaces: {{ toJson $.Values.watchNamespaces }}
workloadKeySecret: {{ $.Values.workloadKeySecret }}
statusWriter:
  leaseName: {{ include "svc.fullname" $ }}-gateway-status
  intervalSeconds: {{ int64 .statusIntervalSeconds }}
redisTimeoutMs: {{ int64 .redisTimeoutMs }}
leaseMs: {{ int64 .leaseMs }}
bytesInFlight:
  total: {{ int64 .bytesInFlight.total }}
  perCaller: {{ int64 .bytesInFlight.perCaller }}
uploadIdleMs: {{ int64 .uploadIdleMs }}
{{- if .audit.enabled }}
audit:
  dir: /var/lib/svc/audit
  onFailure: {{ .audit.onFailure }}
  sync: {{ .audit.sync }}
  space: {{ toJson .audit.space }}
{{- else }}
audit: null
{{- end }}
envoy:
  heapBytes: {{ int64 .envoy.heapBytes }}
  concurrency: {{ if .envoy.concurrency }}{{ int64 .envoy.concurrency }}{{ else }}null{{ end }}
{{- with include "svc.guardEndpoint" $ }}
guardEndpoint: {{ . }}
{{- end }}
mock: {{ .mock }}
drainSeconds: {{ int64 .drainSeconds }}
drainDelaySeconds: {{ int64 .drainDelaySeconds }}
logLevel: {{ .logLevel }}
{{- end }}
{{- end }}
