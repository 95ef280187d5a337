{{- define "svc.controllerConfig" -}}
{{- $gateway := dict "root" . "component" "gateway" "values" .Values.gateway }}
namespaces: {{ toJson .Values.watchNamespaces }}
leaderElection:
  leaseName: {{ include "svc.fullname" . }}-controller
  {{- with .Values.controller.leaderElection }}
  leaseSeconds: {{ int64 .leaseSeconds }}
  renewSeconds: {{ int64 .renewSeconds }}
  retrySeconds: {{ int64 .retrySeconds }}
  {{- end }}
workloadKeySecret: {{ .Values.workloadKeySecret }}
images:
  proxy: {{ include "svc.image" (dict "root" . "image" "proxy") }}
  svc: {{ include "svc.image" (dict "root" . "image" "svc") }}
  pullPolicy: {{ .Values.images.pullPolicy }}
  pullSecrets: {{ include "svc.pullSecretNames" . }}
gateway:
  host: {{ include "svc.fullname" . }}-gateway.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
  port: 8000
  serviceAccount: {{ include "svc.serviceAccountName" $gateway }}
  podLabels:
    {{- include "svc.selectorLabels" $gateway | nindent 4 }}
{{- with include "svc.guardEndpoint" . }}
guardEndpoint: {{ . }}
{{- end }}
baseUrl: {{ .Values.baseUrl | quote }}
{{- with .Values.agents }}
sidecar:
  resources:
    {{- range $name, $quantities := pick .sidecar.resources "requests" "limits" }}
    {{ $name }}:
      {{- range $resource, $quantity := $quantities }}
      {{ $resource }}: {{ $quantity | quote }}
      {{- end }}
    {{- end }}
  logLevel: {{ .sidecar.logLevel }}
  pollSeconds: {{ int64 .sidecar.pollSeconds }}
  metricsPort: {{ int64 .sidecar.metricsPort }}
  uid: {{ int64 .sidecar.uid }}
  upstreamCaConfigMap: {{ .sidecar.upstreamCaConfigMap | quote }}
interception: {{ .interception }}
dns:
  servers: {{ toJson .dns.servers }}
networkPolicy:
  enabled: {{ .networkPolicy.enabled }}
  dnsNamespace: {{ .networkPolicy.dnsNamespace }}
  dnsPodLabels:
    {{- toYaml .networkPolicy.dnsPodLabels | nindent 4 }}
  metricsFrom: {{ toJson $.Values.monitoring.scrapeFrom }}
audit:
  enabled: {{ .audit.enabled }}
  claim: {{ .audit.claim | quote }}
{{- end }}
http: {address: "0.0.0.0", port: 8082}
logLevel: {{ .Values.controller.logLevel }}
{{- end }}
